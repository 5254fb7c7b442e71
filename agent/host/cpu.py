"""CPU use and load: of the whole machine, or of the container against its own limit."""

from __future__ import annotations

from agent.host import files
from agent.rates import CounterHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.host.cgroups import Cgroup

_IDLE, _IOWAIT = 3, 4
# user nice system idle iowait irq softirq steal; guest time is already inside user and nice (proc(5))
_STAT_FIELDS = 8


class CpuReader:
    def __init__(self, root: str, cgroup: Cgroup | None) -> None:
        self._root = root
        self._cgroup = cgroup
        self._history = CounterHistory()

    def read(self, now: float) -> dict[str, object]:
        values: dict[str, object] = {**self._machine(now), **self._load()}
        if self._cgroup is not None:
            values.update(self._against_limit(now, self._cgroup))
        return values

    def _machine(self, now: float) -> dict[str, float]:
        line = files.read_text(self._root + "proc/stat").split("\n", 1)[0]
        ticks = tuple(float(word) for word in line.split()[1 : 1 + _STAT_FIELDS])
        interval = self._history.interval("stat", now, ticks)
        total = sum(interval.deltas) if interval else 0
        if interval is None or total <= 0:
            return {}
        idle, iowait = interval.deltas[_IDLE], interval.deltas[_IOWAIT]
        return {"cpu_percent": 100 * (total - idle - iowait) / total, "cpu_iowait_percent": 100 * iowait / total}

    def _load(self) -> dict[str, float]:
        return {"load1": float(files.read_text(self._root + "proc/loadavg").split()[0])}

    def _against_limit(self, now: float, cgroup: Cgroup) -> dict[str, float]:
        """In a container with a limit, 100 % is that limit: the machine's own figure would show the neighbours' work."""
        limit, used = cgroup.cpu_limit_cores(), cgroup.cpu_used_seconds()
        if limit is None:
            return {}
        values = {"cpu_limit_cores": limit}
        interval = self._history.interval("cgroup", now, (used,)) if used is not None else None
        if interval is not None:
            values["cpu_percent"] = min(100.0, 100 * interval.per_second(0) / limit)
        return values
