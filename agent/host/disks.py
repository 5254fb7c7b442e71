"""Disk traffic per whole physical disk, from /proc/diskstats."""

from __future__ import annotations

import os
import re

from agent.host import files
from agent.rates import CounterHistory, Interval

# The kernel counts sectors of 512 bytes here whatever the disk's own sector size is (Documentation/admin-guide/iostats.rst)
SECTOR_BYTES = 512
# Their traffic is counted again on the disks below them, or is no disk at all (RAM, loop files, NVMe path devices)
_NOT_PHYSICAL = re.compile(r"^(z?ram\d|loop|fd\d|sr\d|dm-|md\d|drbd|bcache|zd\d|nbd\d|nvme\d+c\d+n\d+)")
_PARTITION = re.compile(r"^((h|s|v|xv)d[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)(p|boot)\d+)$")
_READS, _READ_BYTES, _READ_SECONDS, _WRITES, _WRITTEN_BYTES, _WRITE_SECONDS, _BUSY_SECONDS = range(7)


class DiskCounters:
    """One line of /proc/diskstats: ``columns`` as the kernel writes them after the name, 11 to 17 of them."""

    __slots__ = ("columns", "device", "number")

    def __init__(self, device: str, number: str, columns: tuple[float, ...]) -> None:
        self.device = device
        self.number = number
        self.columns = columns

    @property
    def counters(self) -> tuple[float, ...]:
        """Reads, bytes, seconds, writes, bytes, seconds, busy seconds."""
        reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, _, busy_ms, _ = self.columns[:11]
        read_bytes, written_bytes = read_sectors * SECTOR_BYTES, written_sectors * SECTOR_BYTES
        return (reads, read_bytes, read_ms / 1e3, writes, written_bytes, write_ms / 1e3, busy_ms / 1e3)


def physical_disks(root: str) -> list[DiskCounters]:
    """Whole physical disks only: a partition, dm or md device beside its disk would count every byte twice."""
    disks = []
    for line in files.read_text(root + "proc/diskstats").splitlines():
        words = line.split()
        if len(words) >= 14 and _is_whole_disk(root, words[2]):
            columns = tuple(float(word) for word in words[3:])
            disks.append(DiskCounters(words[2], f"{words[0]}:{words[1]}", columns))
    return disks


def _is_whole_disk(root: str, device: str) -> bool:
    if _NOT_PHYSICAL.match(device):
        return False
    if os.path.isdir(root + "sys/block"):
        return os.path.isdir(f"{root}sys/block/{device.replace('/', '!')}")
    return not _PARTITION.match(device)


class DiskReader:
    def __init__(self, root: str) -> None:
        self._root = root
        self._history = CounterHistory()

    def read(self, now: float) -> list[dict[str, object]]:
        """Protocol rows, one per disk that was also there at the last read and whose counters did not go back."""
        rows: list[dict[str, object]] = []
        disks = physical_disks(self._root)
        for disk in disks:
            interval = self._history.interval(disk.device, now, disk.counters)
            if interval is not None:
                rows.append({"device": disk.device, **_rates(interval)})
        self._history.forget_except({disk.device for disk in disks})
        return rows


def _rates(interval: Interval) -> dict[str, float]:
    rates = {
        "read_bytes_per_second": interval.per_second(_READ_BYTES),
        "write_bytes_per_second": interval.per_second(_WRITTEN_BYTES),
        "read_iops": interval.per_second(_READS),
        "write_iops": interval.per_second(_WRITES),
        "busy_percent": min(100.0, 100 * interval.per_second(_BUSY_SECONDS)),
    }
    # Without a request in the interval there is no latency: absent, not zero
    if interval.deltas[_READS] > 0:
        rates["read_latency_seconds"] = interval.deltas[_READ_SECONDS] / interval.deltas[_READS]
    if interval.deltas[_WRITES] > 0:
        rates["write_latency_seconds"] = interval.deltas[_WRITE_SECONDS] / interval.deltas[_WRITES]
    return rates
