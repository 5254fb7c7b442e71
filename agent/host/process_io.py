"""Disk bytes of the container's own processes, for kernels that do not account IO to cgroups."""

from __future__ import annotations

import os

from agent.host import files
from agent.rates import CounterHistory

# Reading one file per process: beyond this many the figure costs more than it tells
_MOST_PROCESSES = 256


class ProcessIoReader:
    def __init__(self, root: str) -> None:
        self._root = root
        self._history = CounterHistory()

    def read(self, now: float) -> dict[str, object]:
        """``process_io``: bytes per second summed over the processes that lived through the interval.

        Empty where not every process may be read: a part of the traffic would look like a quiet machine.
        """
        processes = [name for name in os.listdir(self._root + "proc") if name.isdigit()]
        self._history.forget_except(set(processes))
        if len(processes) > _MOST_PROCESSES:
            return {}
        rates = []
        for process in processes:
            counters = self._counters(process)
            interval = self._history.interval(process, now, counters) if counters is not None else None
            if interval is not None:
                rates.append((interval.per_second(0), interval.per_second(1)))
        return {"process_io": _summed(rates)} if rates else {}

    def _counters(self, process: str) -> tuple[float, float] | None:
        """None for a process that just ended. Raises PermissionError for one that is not ours to read."""
        try:
            lines = files.read_text(f"{self._root}proc/{process}/io").splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return None
        values = {name: float(value) for name, _, value in (line.partition(":") for line in lines)}
        return values["read_bytes"], values["write_bytes"]


def _summed(rates: list[tuple[float, float]]) -> dict[str, float]:
    return {
        "read_bytes_per_second": sum(rate[0] for rate in rates),
        "write_bytes_per_second": sum(rate[1] for rate in rates),
    }
