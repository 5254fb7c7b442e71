"""Memory of the machine, or of the container when it has a limit of its own, and pressure stalls."""

from __future__ import annotations

from agent.host import files
from agent.rates import CounterHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.host.cgroups import Cgroup

_PRESSURE = {"cpu": "pressure_cpu_percent", "memory": "pressure_memory_percent", "io": "pressure_io_percent"}
_MICROSECONDS = 1e6


def meminfo_bytes(root: str) -> dict[str, int]:
    """``/proc/meminfo`` by name, in bytes."""
    values = {}
    for line in files.read_text(root + "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            values[name] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return values


class MemoryReader:
    def __init__(self, root: str, cgroup: Cgroup | None) -> None:
        self._root = root
        self._cgroup = cgroup

    def read(self, now: float) -> dict[str, object]:
        info = meminfo_bytes(self._root)
        total, available = info.get("MemTotal"), info.get("MemAvailable")
        values: dict[str, object] = {}
        if total is not None:
            values["memory_total_bytes"] = total
            if available is not None:
                values["memory_used_bytes"] = total - available
        return {**values, **self._within_limit(total)}

    def _within_limit(self, machine_bytes: int | None) -> dict[str, int]:
        limit = self._cgroup.memory_limit_bytes() if self._cgroup is not None else None
        # v1 says "no limit" with a number near 2^63: a limit above the machine's memory limits nothing
        if self._cgroup is None or limit is None or (machine_bytes is not None and limit >= machine_bytes):
            return {}
        used = self._cgroup.memory_working_set_bytes()
        return {"memory_total_bytes": limit, **({"memory_used_bytes": used} if used is not None else {})}


class PressureReader:
    """Share of the interval in which some task waited, from the kernel's stall counters (PSI, microseconds)."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._history = CounterHistory()

    def read(self, now: float) -> dict[str, object]:
        values: dict[str, object] = {}
        for resource, field in _PRESSURE.items():
            stalled = self._stalled_microseconds(resource)
            interval = self._history.interval(resource, now, (stalled,)) if stalled is not None else None
            if interval is not None:
                values[field] = min(100.0, 100 * interval.per_second(0) / _MICROSECONDS)
        return values

    def _stalled_microseconds(self, resource: str) -> float | None:
        text = files.read_text_or_none(f"{self._root}proc/pressure/{resource}")
        for line in (text or "").splitlines():
            if line.startswith("some "):
                return float(line.rpartition("total=")[2])
        return None
