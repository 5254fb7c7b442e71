"""What the container we live in uses and may use: cgroup v2, v1, or the two mixed."""

from __future__ import annotations

import os

from agent.host import files

_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "blkio")
_UNIFIED = "unified"
_NANOSECONDS, _MICROSECONDS = 1e9, 1e6


class IoTotals:
    """Bytes and requests since the container began, over whole physical disks."""

    __slots__ = ("read_bytes", "reads", "writes", "written_bytes")

    def __init__(self, read_bytes: float, written_bytes: float, reads: float, writes: float) -> None:
        self.read_bytes = read_bytes
        self.written_bytes = written_bytes
        self.reads = reads
        self.writes = writes

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.read_bytes, self.written_bytes, self.reads, self.writes)


class Cgroup:
    """The directories of one cgroup, by controller; whatever a file does not say is None, never zero."""

    def __init__(self, directories: dict[str, str]) -> None:
        self._directories = directories

    def cpu_used_seconds(self) -> float | None:
        stat = self._keyed(_UNIFIED, "cpu.stat")
        if "usage_usec" in stat:
            return stat["usage_usec"] / _MICROSECONDS
        nanoseconds = self._number("cpuacct", "cpuacct.usage")
        return nanoseconds / _NANOSECONDS if nanoseconds is not None else None

    def cpu_limit_cores(self) -> float | None:
        """The tighter of quota and CPU set; None where neither limits."""
        limits = [limit for limit in (self._quota_cores(), self._cpuset_cores()) if limit is not None]
        return min(limits) if limits else None

    def memory_limit_bytes(self) -> int | None:
        return _first(self._number(_UNIFIED, "memory.max"), self._number("memory", "memory.limit_in_bytes"))

    def memory_used_bytes(self) -> int | None:
        return _first(self._number(_UNIFIED, "memory.current"), self._number("memory", "memory.usage_in_bytes"))

    def memory_working_set_bytes(self) -> int | None:
        """Use without the file cache that the kernel would drop first."""
        used = self.memory_used_bytes()
        stat = {**self._keyed("memory", "memory.stat"), **self._keyed(_UNIFIED, "memory.stat")}
        inactive = stat.get("total_inactive_file", stat.get("inactive_file", 0.0))
        return max(0, used - int(inactive)) if used is not None else None

    def io_totals(self, disk_numbers: set[str]) -> IoTotals | None:
        """None when the kernel names no device: it does not account for this cgroup, and missing is not zero."""
        return self._unified_io(disk_numbers) or self._v1_io(disk_numbers)

    def _quota_cores(self) -> float | None:
        words = (self._text(_UNIFIED, "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit():
            return int(words[0]) / int(words[1])
        quota, period = self._number("cpu", "cpu.cfs_quota_us"), self._number("cpu", "cpu.cfs_period_us")
        return quota / period if quota is not None and period and quota > 0 else None

    def _cpuset_cores(self) -> float | None:
        text = self._text(_UNIFIED, "cpuset.cpus.effective") or self._text("cpuset", "cpuset.cpus")
        count = count_cpus(text or "")
        return float(count) if 0 < count < (os.cpu_count() or count) else None

    def _unified_io(self, disk_numbers: set[str]) -> IoTotals | None:
        text = self._text(_UNIFIED, "io.stat")
        if text is None:
            return None
        devices = {words[0]: dict(_pairs(words[1:])) for line in text.splitlines() if (words := line.split())}
        rows = _chosen(devices, disk_numbers)
        if not rows:
            return None
        names = ("rbytes", "wbytes", "rios", "wios")
        return IoTotals(*(sum(row.get(name, 0.0) for row in rows) for name in names))

    def _v1_io(self, disk_numbers: set[str]) -> IoTotals | None:
        size, count = (self._text("blkio", "blkio.throttle." + name) for name in ("io_service_bytes", "io_serviced"))
        if size is None or count is None:
            return None
        sizes, counts = (_chosen(_by_device(text), disk_numbers) for text in (size, count))
        if not sizes or not counts:
            return None
        return IoTotals(
            *(sum(row.get(kind, 0.0) for row in rows) for rows in (sizes, counts) for kind in ("Read", "Write"))
        )

    def _text(self, controller: str, name: str) -> str | None:
        directory = self._directories.get(controller)
        return files.read_text_or_none(f"{directory}/{name}") if directory is not None else None

    def _number(self, controller: str, name: str) -> int | None:
        directory = self._directories.get(controller)
        return files.read_number(f"{directory}/{name}") if directory is not None else None

    def _keyed(self, controller: str, name: str) -> dict[str, float]:
        lines = (self._text(controller, name) or "").splitlines()
        return {words[0]: float(words[1]) for line in lines if len(words := line.split()) == 2}


def container_cgroup(root: str) -> Cgroup:
    """The cgroup of the container's first process, found through the mounts that are visible inside."""
    mounts = _mounts(root)
    directories = {}
    for controller, path in _paths_of_first_process(root).items():
        if controller in mounts:
            mounted_root, mount_point = mounts[controller]
            directories[controller] = root.rstrip("/") + mount_point + _below(path, mounted_root)
    return Cgroup(directories)


def count_cpus(text: str) -> int:
    """How many CPUs a kernel list such as ``0-3,8`` names."""
    count = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            count += int(last or first) - int(first) + 1
    return count


def _mounts(root: str) -> dict[str, tuple[str, str]]:
    """By controller: which part of the hierarchy is mounted, and where (proc(5), mountinfo)."""
    mounts = {}
    for line in (files.read_text_or_none(root + "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if len(words) < 5 or not kind or kind[0] not in ("cgroup", "cgroup2"):
            continue
        names = [_UNIFIED] if kind[0] == "cgroup2" else [name for name in kind[-1].split(",") if name in _CONTROLLERS]
        mounts.update(dict.fromkeys(names, (words[3], words[4])))
    return mounts


def _paths_of_first_process(root: str) -> dict[str, str]:
    paths = {}
    text = files.read_text_or_none(root + "proc/1/cgroup") or files.read_text_or_none(root + "proc/self/cgroup") or ""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths.update(dict.fromkeys([_UNIFIED] if number == "0" else controllers.split(","), path))
    return paths


def _below(path: str, mounted_root: str) -> str:
    """Where ``path`` lies under a mount of ``mounted_root``; a path outside it (``/../..``) means the mount itself."""
    relative = path[len(mounted_root.rstrip("/")) :] if path.startswith(mounted_root) else ""
    return "" if relative in ("", "/") or ".." in relative else relative


def _chosen(devices: dict[str, dict[str, float]], disk_numbers: set[str]) -> list[dict[str, float]]:
    """Rows of whole disks; where the kernel names none of them, whatever it names."""
    return [row for number, row in devices.items() if number in disk_numbers] or list(devices.values())


def _pairs(words: list[str]) -> list[tuple[str, float]]:
    split = (word.partition("=") for word in words)
    return [(name, float(value)) for name, _, value in split if value.isdigit()]


def _by_device(text: str) -> dict[str, dict[str, float]]:
    devices: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3:
            devices.setdefault(words[0], {})[words[1]] = float(words[2])
    return devices


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
