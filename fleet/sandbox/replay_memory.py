"""How far a replay is, kept in a file between its runs; and which readings have grown too old for the server meanwhile."""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from fleet.sandbox.desk import write_private
from fleet.traces import Trace

WINDOW_SECONDS = 48 * 3600.0
# What is close to falling out of the window might do so on the way.
WINDOW_MARGIN_SECONDS = 120.0
SAVE_SECONDS = 1.0


class ReplayError(Exception):
    """The replay cannot go on; the text says why and what to do."""


@dataclass
class PodMemory:
    """How far one pod is: its agent's token and how many of its readings, in order, are acknowledged."""

    token: str = ""
    sent: int = 0


@dataclass
class ReplayMemory:
    """What a replay keeps between runs, in a file for its owner only. `start`: when the trace begins, seconds since the epoch."""

    path: Path
    start: float | None = None
    pods: dict[str, PodMemory] = field(default_factory=dict)
    saved_at: float = 0.0
    _lock: IO[bytes] | None = None

    def open(self) -> None:
        """Raises ReplayError while another process replays the same trace to the same place."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self.path.with_suffix(".lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ReplayError("Another process replays this trace already. Wait for it, or stop it.") from None
        self._lock = lock
        if self.path.exists():
            content = json.loads(self.path.read_text())
            self.start = content["start"]
            self.pods = {pod: PodMemory(**memory) for pod, memory in content["pods"].items()}

    def close(self) -> None:
        if self._lock:
            self.save()
            self._lock.close()
            self._lock = None

    def begin_at(self, start: float) -> None:
        """Another start makes other samples of the same agents."""
        if self.start is not None and self.start != start:
            self.rewind()
        self.start = start

    def rewind(self) -> None:
        for memory in self.pods.values():
            memory.sent = 0

    def save(self) -> None:
        self.saved_at = time.monotonic()
        pods = {pod: asdict(memory) for pod, memory in self.pods.items()}
        write_private(self.path, {"start": self.start, "pods": pods})

    def save_sometimes(self) -> None:
        if time.monotonic() - self.saved_at > SAVE_SECONDS:
            self.save()


def memory_path(directory: Path, trace: Trace, url: str, place: str) -> Path:
    """One file for a trace, a dashboard and a team or token."""
    name = hashlib.sha256(f"{trace.digest} {url} {place}".encode()).hexdigest()[:24]
    return directory / f"{name}.json"


@dataclass(frozen=True, slots=True)
class Outside:
    """Readings that the server would refuse for their age, and the earliest start that would avoid it."""

    readings: int
    pods: int
    oldest: float
    newest: float
    earliest_start: float


def oldest_allowed(now: float) -> float:
    return now - WINDOW_SECONDS + WINDOW_MARGIN_SECONDS


def is_too_old(at: float, now: float) -> bool:
    return at < oldest_allowed(now)


def outside_window(trace: Trace, memory: ReplayMemory, start: float, now: float) -> Outside | None:
    """What is not sent yet and too old by now."""
    old = {
        pod: [row.t for row in rows[_sent(memory, pod) :] if is_too_old(start + row.t, now)]
        for pod, rows in trace.pods.items()
    }
    times = [t for readings in old.values() for t in readings]
    if not times:
        return None
    pods = sum(1 for readings in old.values() if readings)
    return Outside(len(times), pods, start + min(times), start + max(times), oldest_allowed(now) - min(times))


def _sent(memory: ReplayMemory, pod: str) -> int:
    return memory.pods[pod].sent if pod in memory.pods else 0
