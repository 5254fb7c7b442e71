"""Batches that the dashboard has not yet acknowledged: on disk, bounded, in order."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

log = logging.getLogger("rackrent.outbox")

KEPT_SECONDS = 24 * 3600.0
_MOST_BYTES = 96 << 20
_MOST_MEMORY_BYTES = 16 << 20
_PAGE_CACHE_KIB = 256
_SCHEMA = """
CREATE TABLE IF NOT EXISTS batch (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    place REAL,
    made_at REAL NOT NULL,
    steady_at REAL NOT NULL,
    boot_id TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS batch_place ON batch (place);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES ('dropped', 0);
"""


class Batch:
    """``made_at`` and ``steady_at`` are one moment on the wall clock and on the steady clock of boot ``boot_id``."""

    __slots__ = ("boot_id", "document", "made_at", "place", "seq", "steady_at")

    def __init__(self, row: tuple[int, float, float, float, str, bytes]) -> None:
        self.seq, self.place, self.made_at, self.steady_at, self.boot_id, body = row
        self.document: dict[str, object] = json.loads(zlib.decompress(body))


class Outbox:
    """A ring of the last 24 hours in SQLite; survives kill -9. Falls back to memory where the disk takes nothing more.

    AUTOINCREMENT: a ``seq`` is never used twice, also after its batch was acknowledged and deleted.
    """

    def __init__(self, path: str, *, most_bytes: int = _MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        self._path = path
        self.in_memory = False
        self._database = self._opened()

    def add(self, document: dict[str, object], *, made_at: float, steady_at: float, boot_id: str) -> None:
        row = (made_at, steady_at, boot_id, _packed(document))
        self._on_disk_or_in_memory(lambda: self._insert(row))

    def oldest(self) -> Batch | None:
        """A batch that can't be unpacked any more is dropped, counted."""
        while (row := self._on_disk_or_in_memory(self._oldest_row)) is not None:
            try:
                return Batch(row)
            except (zlib.error, ValueError):
                self.drop(row[0])
        return None

    def remove(self, seq: int) -> None:
        """The dashboard has it, on disk."""
        self._on_disk_or_in_memory(lambda: self._execute("DELETE FROM batch WHERE seq = ?", (seq,)))

    def drop(self, seq: int) -> None:
        """Give a batch up, counted."""
        self._on_disk_or_in_memory(lambda: self._delete_counted("seq = ?", (seq,)))

    def split(self, batch: Batch) -> bool:
        """Replace a batch that is too large by two, both sent before anything newer; False when it holds one sample only."""
        samples = batch.document.get("samples")
        if not isinstance(samples, list) or len(samples) < 2:
            return False
        middle = len(samples) // 2
        rest: dict[str, object] = {
            name: batch.document[name] for name in ("v", "agent_version") if name in batch.document
        }
        first, second = {**batch.document, "samples": samples[:middle]}, {**rest, "samples": samples[middle:]}
        self._on_disk_or_in_memory(lambda: self._replace(batch, first, second))
        return True

    def dropped(self) -> int:
        query = "SELECT value FROM counter WHERE name = 'dropped'"
        return int(self._on_disk_or_in_memory(lambda: self._database.execute(query).fetchone())[0])

    def waiting(self) -> tuple[int, float | None]:
        """(number of batches, when the oldest was made)."""
        query = "SELECT count(*), min(made_at) FROM batch"
        count, oldest = self._on_disk_or_in_memory(lambda: self._database.execute(query).fetchone())
        return int(count), oldest

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _on_disk_or_in_memory(self, work: Callable[[], Any]) -> Any:
        """Do it in one transaction, by one thread at a time; where the disk refuses, do it again in memory."""
        with self._lock:
            try:
                with self._database:
                    return work()
            except sqlite3.Error as error:
                if self.in_memory:
                    raise
                self._give_up_disk(error)
            with self._database:
                return work()

    def _oldest_row(self) -> Any:
        query = "SELECT seq, place, made_at, steady_at, boot_id, body FROM batch ORDER BY place LIMIT 1"
        return self._database.execute(query).fetchone()

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        self._database.execute(statement, values)

    def _insert(self, row: tuple[float, float, str, bytes]) -> None:
        made_at, steady_at, boot_id, _ = row
        self._execute("INSERT INTO batch (made_at, steady_at, boot_id, body) VALUES (?, ?, ?, ?)", row)
        self._execute("UPDATE batch SET place = seq WHERE place IS NULL", ())
        # Within one boot age is told by the steady clock: a wall clock set wrong for a moment must not empty the ring
        self._delete_counted("boot_id = ? AND steady_at < ?", (boot_id, steady_at - KEPT_SECONDS))
        self._delete_counted("boot_id <> ? AND made_at < ?", (boot_id, made_at - KEPT_SECONDS))
        self._trim()

    def _replace(self, batch: Batch, first: dict[str, object], second: dict[str, object]) -> None:
        self._execute("UPDATE batch SET body = ? WHERE seq = ?", (_packed(first), batch.seq))
        following = self._database.execute("SELECT min(place) FROM batch WHERE place > ?", (batch.place,)).fetchone()
        place = (batch.place + (following[0] or batch.place + 1)) / 2
        self._execute(
            "INSERT INTO batch (place, made_at, steady_at, boot_id, body) VALUES (?, ?, ?, ?, ?)",
            (place, batch.made_at, batch.steady_at, batch.boot_id, _packed(second)),
        )

    def _trim(self) -> None:
        """Within the byte limit, oldest first out."""
        pages, free, size = (
            self._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self._most_bytes:
            self._delete_counted("seq IN (SELECT seq FROM batch ORDER BY place LIMIT 32)", ())

    def _delete_counted(self, condition: str, values: tuple[object, ...]) -> None:
        # The conditions are written in this file; no value of anybody else is in them
        gone = self._database.execute(f"DELETE FROM batch WHERE {condition}", values).rowcount  # noqa: S608
        if gone > 0:
            self._database.execute("UPDATE counter SET value = value + ? WHERE name = 'dropped'", (gone,))
            log.warning("%d unsent batches were dropped", gone)

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.OperationalError as error:
            told = "%s cannot be used (%s): unsent batches are kept in memory and lost with this process"
            log.warning(told, self._path, error)
            self.in_memory = True
            return _connect(":memory:")
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s): it is kept aside and a new one begun", self._path, error)
            _set_aside(self._path)
            return _connect(self._path)

    def _give_up_disk(self, error: sqlite3.Error) -> None:
        """The disk is full, broken or was made read-only: go on in memory, with what can still be read."""
        log.warning("%s takes no more (%s): unsent batches are kept in memory from here on", self._path, error)
        memory = _connect(":memory:")
        try:
            self._database.backup(memory)
        except sqlite3.Error as unreadable:
            log.warning("what waited in %s cannot be read either: %s", self._path, unreadable)
            memory = _connect(":memory:")
        self._database.close()
        self._database, self.in_memory = memory, True
        self._most_bytes = min(self._most_bytes, _MOST_MEMORY_BYTES)


def _set_aside(path: str) -> None:
    """With its journal: left behind, that would be played into the new file."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.replace(path + suffix, f"{path}.damaged{suffix}")


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, check_same_thread=False)
    database.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
    database.execute("PRAGMA journal_mode = WAL")
    # WAL with NORMAL keeps a batch over kill -9 of the agent; only a power cut may cost the newest ones
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(_SCHEMA)
    return database


def _packed(document: dict[str, object]) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)
