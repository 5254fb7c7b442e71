"""What is written down about a running `up`, so that a second one stands back and a later one finds what a crash left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from config.embedded.processes import started_at
from config.runtime.children import end_group

END_SECONDS = 15.0
_POLL_SECONDS = 0.1


class AlreadyRunningError(RuntimeError):
    """Another `up` runs this installation; the text says which."""


@dataclass(frozen=True)
class RecordedProcess:
    """A process by number and start mark: the number alone may be another's by now."""

    name: str
    pid: int
    started: str

    @classmethod
    def of(cls, name: str, pid: int) -> RecordedProcess | None:
        started = started_at(pid)
        return cls(name, pid, started) if started else None

    @property
    def is_alive(self) -> bool:
        return started_at(self.pid) == self.started


class RunRecord:
    """`up.json` and `up.lock` in the installation's home. The lock falls with its process, however that ends."""

    def __init__(self, home: Path) -> None:
        self.path = home / "up.json"
        self._lock_path = home / "up.lock"
        self._lock: IO[bytes] | None = None

    def acquire(self) -> list[RecordedProcess]:
        """Become the one `up` of this installation; returns what a former one left running, in the order it was started.

        Raises AlreadyRunningError.
        """
        lock = self._lock_path.open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise AlreadyRunningError(self._who()) from None
        self._lock = lock
        return [process for process in self._children() if process.is_alive]

    def write(self, *, address: str, children: Sequence[tuple[str, int]]) -> None:
        recorded = [RecordedProcess.of(name, pid) for name, pid in children]
        content = {"pid": os.getpid(), "address": address, "children": [asdict(child) for child in recorded if child]}
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(content))
        draft.replace(self.path)

    def release(self) -> None:
        self.path.unlink(missing_ok=True)
        if self._lock:
            self._lock.close()

    @property
    def is_held(self) -> bool:
        """Whether some `up` runs this installation now."""
        try:
            with self._lock_path.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _read(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self.path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return content

    def _children(self) -> list[RecordedProcess]:
        return [RecordedProcess(**child) for child in self._read().get("children", [])]

    def _who(self) -> str:
        content = self._read()
        if not content:
            return "Rackrent is being started here by another process."
        return f"Rackrent runs here already: process {content['pid']}, at {content['address']}. Stop it there (Ctrl-C) or with `kill {content['pid']}`."


def end_orphans(orphans: Sequence[RecordedProcess], say: Callable[[str], None]) -> None:
    """End what a killed `up` left running, the last started first; embedded servers close their files in order."""
    for orphan in reversed(orphans):
        say(f"ending {orphan.name} (process {orphan.pid}), left over from a run that was killed")
        with contextlib.suppress(ProcessLookupError):
            # PostgreSQL waits for its clients on SIGTERM, and ends them on SIGINT.
            os.kill(orphan.pid, signal.SIGINT if orphan.name.startswith("postgres") else signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while orphan.is_alive and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if orphan.is_alive or not orphan.name.startswith("postgres"):
            end_group(orphan.pid)
