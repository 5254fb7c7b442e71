"""What the agent itself costs: CPU time and memory of its processes."""

from __future__ import annotations

import os

from agent.host import files
from agent.rates import CounterHistory

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class OwnUse:
    def __init__(self) -> None:
        self._history = CounterHistory()

    def read(self, now: float, pids: list[int]) -> dict[str, float]:
        """``cpu_percent`` of one core since the last read, ``memory_bytes`` as the sum of proportional set sizes."""
        values: dict[str, float] = {}
        seconds = [used for pid in pids if (used := cpu_seconds(pid)) is not None]
        # A child that was replaced takes its time with it; the sum goes back and that interval is dropped
        interval = self._history.interval("cpu", now, (sum(seconds),))
        if interval is not None:
            values["cpu_percent"] = 100 * interval.per_second(0)
        memory = [size for pid in pids if (size := proportional_bytes(pid)) is not None]
        if memory:
            values["memory_bytes"] = sum(memory)
        return values


def cpu_seconds(pid: int) -> float | None:
    text = files.read_text_or_none(f"/proc/{pid}/stat")
    if text is None:
        return None
    words = text.rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS_PER_SECOND


def proportional_bytes(pid: int) -> int | None:
    """PSS: pages shared by several processes are counted in parts. None on kernels before 4.14."""
    for line in (files.read_text_or_none(f"/proc/{pid}/smaps_rollup") or "").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None
