"""One host sample, put together from readers that cannot take each other down."""

from __future__ import annotations

import logging

from agent.host.cgroups import Cgroup, container_cgroup
from agent.host.container import container_kind
from agent.host.cpu import CpuReader
from agent.host.disks import DiskReader, physical_disks
from agent.host.memory import MemoryReader, PressureReader
from agent.host.network import NetworkReader
from agent.host.process_io import ProcessIoReader
from agent.rates import CounterHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Values = dict[str, object]

log = logging.getLogger("rackrent.host")
_SUMMED = ("read_bytes_per_second", "write_bytes_per_second", "read_iops", "write_iops")


class HostReader:
    """``slow`` gives values that others refresh in the background (sessions, file systems)."""

    def __init__(self, root: str = "/", slow: Callable[[float], Values] | None = None) -> None:
        cgroup = container_cgroup(root) if container_kind(root) != "none" else None
        disks = DiskReader(root)
        self._sources: dict[str, Callable[[float], Values]] = {
            "cpu": CpuReader(root, cgroup).read,
            "memory": MemoryReader(root, cgroup).read,
            "pressure": PressureReader(root).read,
            "disks": lambda now: {"disks": disks.read(now)},
            "network": NetworkReader(root).read,
        }
        if cgroup is not None:
            self._sources["cgroup"] = ContainerReader(root, cgroup).read
            self._sources["process io"] = ProcessIoReader(root).read
        if slow is not None:
            self._sources["slow probes"] = slow
        self._told: set[str] = set()

    def read(self, now: float) -> Values:
        """Protocol fields of one host sample; ``now`` is on the monotonic clock. What could not be read is absent."""
        values: Values = {}
        for name, read in self._sources.items():
            values.update(self._guarded(name, read, now))
        values.update(disk_totals(values))
        values.pop("process_io", None)
        return {name: value for name, value in values.items() if value not in (None, [], {})}

    def _guarded(self, name: str, read: Callable[[float], Values], now: float) -> Values:
        try:
            return read(now)
        except (OSError, ValueError, LookupError) as error:
            # A kernel file that is missing or looks different costs its own values only (gVisor, old kernels)
            if name not in self._told:
                self._told.add(name)
                log.warning("%s cannot be read on this machine: %s", name, error)
            return {}


class ContainerReader:
    """The ``cgroup`` object of a host sample."""

    def __init__(self, root: str, cgroup: Cgroup) -> None:
        self._root = root
        self._cgroup = cgroup
        self._history = CounterHistory()

    def read(self, now: float) -> Values:
        limit, used = self._cgroup.memory_limit_bytes(), self._cgroup.memory_used_bytes()
        values: Values = self._io(now)
        if used is not None:
            values["memory_used_bytes"] = used
        # v1 writes "no limit" as the largest multiple of a page below 2^63
        if limit is not None and limit < 1 << 62:
            values["memory_limit_bytes"] = limit
        return {"cgroup": values}

    def _io(self, now: float) -> Values:
        totals = self._cgroup.io_totals({disk.number for disk in physical_disks(self._root)})
        interval = self._history.interval("io", now, totals.as_tuple()) if totals is not None else None
        return {name: interval.per_second(place) for place, name in enumerate(_SUMMED)} if interval is not None else {}


def disk_totals(values: Values) -> Values:
    """The disk figures that belong to this machine's renter, and in ``disk_scope`` whose traffic they really are.

    /proc/diskstats inside a container shows every tenant of the host: right for noisy neighbours, wrong for attribution.
    """
    cgroup, processes, disks = values.get("cgroup"), values.get("process_io"), values.get("disks")
    if isinstance(cgroup, dict) and "read_iops" in cgroup:
        return {**_prefixed({name: cgroup[name] for name in _SUMMED}), "disk_scope": "cgroup"}
    if isinstance(processes, dict) and processes:
        return {**_prefixed(processes), "disk_scope": "process"}
    if isinstance(disks, list) and disks:
        return {**_prefixed(_over_disks(disks)), "disk_scope": "host"}
    return {}


def _over_disks(disks: list[dict[str, float]]) -> dict[str, float]:
    totals = {name: sum(disk[name] for disk in disks) for name in _SUMMED}
    totals["busy_percent"] = max(disk["busy_percent"] for disk in disks)
    for latency, iops in (("read_latency_seconds", "read_iops"), ("write_latency_seconds", "write_iops")):
        waited = sum(disk[latency] * disk[iops] for disk in disks if latency in disk)
        if totals[iops] > 0:
            totals[latency] = waited / totals[iops]
    return totals


def _prefixed(values: dict[str, float]) -> Values:
    return {f"disk_{name}": value for name, value in values.items()}
