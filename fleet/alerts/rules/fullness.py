"""Memory and disks that run full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from fleet.alerts.findings import NOTE, URGENT, WARNING, Finding
from fleet.alerts.rules.base import Judged, Limits, RuleKind, Threshold, each_gpu, fires, machine_finding
from fleet.alerts.snapshot import Filesystem, Gpu, Host, Machine, Snapshot

GPU_MEMORY, HOST_MEMORY, MEMORY = "gpu_memory", "host_memory", "memory.full"
DISK, DISK_FULL = "disk", "disk.full"
HYSTERESIS_PERCENT = 3.0
# A disk that is emptier than this has time, whatever its trend says of the last hours.
TREND_FROM_PERCENT = 60.0
URGENT_PERCENT, URGENT_HOURS = 98.0, 2.0
_ROOT = "/"


def gpu_memory(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterable[Finding]:
    raises, open_parts = limits["percent"], snapshot.open_parts(MEMORY, GPU_MEMORY)

    def judge(machine: Machine, gpu: Gpu) -> Judged:
        used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
        if gpu.is_parent or used is None or not total:
            return None
        percent = 100 * used / total
        if percent < raises - HYSTERESIS_PERCENT:
            return None
        is_open = (machine.subject, f"gpu:{gpu.pk}") in open_parts
        if not fires(percent, raises, raises - HYSTERESIS_PERCENT, is_open=is_open):
            return None
        return NOTE, {"percent": round(percent), "used_bytes": used, "total_bytes": total}

    return each_gpu(snapshot, GPU_MEMORY, MEMORY, judge)


def host_memory(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterator[Finding]:
    for machine in snapshot.machines:
        host, is_open = machine.host, snapshot.is_open(MEMORY, HOST_MEMORY, machine.subject)
        if host is None or machine.powered is False:
            continue
        percent = _percent(host.memory_used_bytes, host.memory_total_bytes)
        if not host.fresh or percent is None:
            if is_open:
                yield machine_finding(machine, HOST_MEMORY, MEMORY, WARNING, keeps=True)
        elif fires(percent, limits["percent"], limits["percent"] - HYSTERESIS_PERCENT, is_open=is_open):
            yield machine_finding(machine, HOST_MEMORY, MEMORY, WARNING, values={"percent": round(percent)})


def disk(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterator[Finding]:
    open_parts = snapshot.open_parts(DISK_FULL, DISK)
    for machine in snapshot.machines:
        host = machine.host
        if host is None or machine.powered is False:
            continue
        if not host.fresh:
            mounts = [detail for subject, detail in open_parts if subject == machine.subject]
            yield from (
                machine_finding(machine, DISK, DISK_FULL, WARNING, detail=mount, keeps=True) for mount in mounts
            )
            continue
        for filesystem in host.filesystems:
            is_open = (machine.subject, filesystem.mount) in open_parts
            yield from _disk(machine, host, filesystem, limits, is_open=is_open)


def _disk(machine: Machine, host: Host, filesystem: Filesystem, limits: Limits, *, is_open: bool) -> Iterator[Finding]:
    percent = _percent(filesystem.used_bytes, filesystem.total_bytes)
    if percent is None:
        return
    hours = hours_left(filesystem, host.fill_bytes_per_second if filesystem.mount == _ROOT else None)
    full = fires(percent, limits["percent"], limits["percent"] - HYSTERESIS_PERCENT, is_open=is_open)
    soon = hours is not None and percent >= TREND_FROM_PERCENT and hours <= limits["hours"] * (1.25 if is_open else 1)
    if not full and not soon:
        return
    urgent = percent >= URGENT_PERCENT or (
        hours is not None and hours <= URGENT_HOURS and percent >= TREND_FROM_PERCENT
    )
    values: dict[str, float | str] = {"mount": filesystem.mount, "percent": round(percent)}
    if hours is not None:
        values["hours_left"] = _rounded(hours)
    severity = URGENT if urgent else WARNING
    yield machine_finding(machine, DISK, DISK_FULL, severity, detail=filesystem.mount, values=values)


def hours_left(filesystem: Filesystem, fill_bytes_per_second: float | None) -> float | None:
    """Until it is full, if it goes on as in the last hours; None where it does not grow or nobody knows."""
    if fill_bytes_per_second is None or fill_bytes_per_second <= 0:
        return None
    return max(0.0, (filesystem.total_bytes - filesystem.used_bytes) / fill_bytes_per_second / 3_600)


def _rounded(hours: float) -> float:
    """No more precise than a trend is, so that it does not change with every reading."""
    return round(hours, 1) if hours < 3 else float(round(hours))


def _percent(used: int | None, total: int | None) -> float | None:
    return None if used is None or not total else 100 * used / total


RULES = (
    RuleKind(
        GPU_MEMORY, MEMORY, NOTE, gpu_memory, (Threshold("percent", 98, 50, 100, "percent"),), for_seconds=300, history="gpu"
    ),
    RuleKind(
        HOST_MEMORY, MEMORY, WARNING, host_memory, (Threshold("percent", 95, 50, 100, "percent"),), for_seconds=120, history="host"
    ),
    RuleKind(
        DISK,
        DISK_FULL,
        WARNING,
        disk,
        (Threshold("percent", 90, 50, 100, "percent"), Threshold("hours", 24, 1, 168, "hours")),
        for_seconds=60,
        history="host",
    ),
)  # fmt: skip
