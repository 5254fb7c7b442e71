"""The host's counters under node_exporter's names."""

from __future__ import annotations

import os

from agent.exposition import Page
from agent.host import files
from agent.host.boot import boot_at
from agent.host.disks import SECTOR_BYTES, physical_disks
from agent.host.filesystems import LOCAL, sizes
from agent.host.memory import meminfo_bytes
from agent.host.network import interface_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_GAUGE, _COUNTER = "gauge", "counter"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_MILLI = 1e-3
# (name, column of /proc/diskstats after the device's name, factor to the unit of the name)
_DISK = (
    ("reads_completed_total", 0, 1.0),
    ("reads_merged_total", 1, 1.0),
    ("read_bytes_total", 2, SECTOR_BYTES),
    ("read_time_seconds_total", 3, _MILLI),
    ("writes_completed_total", 4, 1.0),
    ("writes_merged_total", 5, 1.0),
    ("written_bytes_total", 6, SECTOR_BYTES),
    ("write_time_seconds_total", 7, _MILLI),
    ("io_now", 8, 1.0),
    ("io_time_seconds_total", 9, _MILLI),
    ("io_time_weighted_seconds_total", 10, _MILLI),
    ("discards_completed_total", 11, 1.0),
    ("discards_merged_total", 12, 1.0),
    ("discarded_sectors_total", 13, 1.0),
    ("discard_time_seconds_total", 14, _MILLI),
    ("flush_requests_total", 15, 1.0),
    ("flush_requests_time_seconds_total", 16, _MILLI),
)
_RECEIVED = ("bytes", "packets", "errs", "drop", "fifo", "frame", "compressed", "multicast")
_TRANSMITTED = ("bytes", "packets", "errs", "drop", "fifo", "colls", "carrier", "compressed")
_CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# The kernel's "some" line is node_exporter's "waiting", its "full" line "stalled"
_PRESSURE = (
    ("cpu", "some", "waiting"),
    ("io", "some", "waiting"),
    ("io", "full", "stalled"),
    ("memory", "some", "waiting"),
    ("memory", "full", "stalled"),
)


def add_host(page: Page, root: str = "/") -> None:
    """Each part for itself: a kernel file that is missing takes only its own families away."""
    for part in (_disks, _network, _memory, _load, _cpu, _pressure, _filesystems, _boot):
        _guarded(part, page, root)


def _guarded(part: Callable[[Page, str], None], page: Page, root: str) -> None:
    try:
        part(page, root)
    except (OSError, ValueError, LookupError):
        return


def _disks(page: Page, root: str) -> None:
    disks = physical_disks(root)
    for name, column, factor in _DISK:
        series = [
            ({"device": disk.device}, disk.columns[column] * factor) for disk in disks if column < len(disk.columns)
        ]
        page.add(f"node_disk_{name}", _GAUGE if name == "io_now" else _COUNTER, f"Disk statistics: {name}.", series)


def _network(page: Page, root: str) -> None:
    interfaces = interface_columns(root)
    for start, direction, names in ((0, "receive", _RECEIVED), (8, "transmit", _TRANSMITTED)):
        for place, name in enumerate(names):
            series = [({"device": device}, columns[start + place]) for device, columns in interfaces.items()]
            page.add(
                f"node_network_{direction}_{name}_total", _COUNTER, f"Network statistics: {direction} {name}.", series
            )


def _memory(page: Page, root: str) -> None:
    info = meminfo_bytes(root)
    for name in ("MemTotal", "MemAvailable", "MemFree", "Cached", "Buffers", "SwapTotal", "SwapFree"):
        if name in info:
            page.add(f"node_memory_{name}_bytes", _GAUGE, f"Memory information: {name}.", [({}, info[name])])


def _load(page: Page, root: str) -> None:
    words = files.read_text(root + "proc/loadavg").split()
    for name, word in zip(("load1", "load5", "load15"), words):
        page.add(f"node_{name}", _GAUGE, f"System load: {name}.", [({}, float(word))])


def _cpu(page: Page, root: str) -> None:
    series = []
    for line in files.read_text(root + "proc/stat").splitlines():
        words = line.split()
        if words and words[0].startswith("cpu") and words[0] != "cpu":
            ticks = zip(_CPU_MODES, words[1:])
            series += [({"cpu": words[0][3:], "mode": mode}, int(count) / _TICKS_PER_SECOND) for mode, count in ticks]
    page.add("node_cpu_seconds_total", _COUNTER, "Seconds the CPUs spent in each mode.", series)


def _pressure(page: Page, root: str) -> None:
    for resource, line_name, name in _PRESSURE:
        for line in (files.read_text_or_none(f"{root}proc/pressure/{resource}") or "").splitlines():
            if line.startswith(line_name + " "):
                seconds = float(line.rpartition("total=")[2]) / 1e6
                page.add(
                    f"node_pressure_{resource}_{name}_seconds_total",
                    _COUNTER,
                    f"Pressure stalls: {resource}.",
                    [({}, seconds)],
                )


def _filesystems(page: Page, root: str) -> None:
    rows = sizes(root, LOCAL)
    for name, column in (("size", 0), ("free", 1), ("avail", 2)):
        series = [({"mountpoint": mount}, float(figures[column])) for mount, figures in rows.items()]
        page.add(f"node_filesystem_{name}_bytes", _GAUGE, f"File system {name} in bytes.", series)


def _boot(page: Page, root: str) -> None:
    at = boot_at(root)
    if at is not None:
        page.add("node_boot_time_seconds", _GAUGE, "Time of the last boot, since the epoch.", [({}, at)])
