"""What one hour of one machine showed, and which hours had the same work of its own. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

GIB = 2**30
# Of a share of 100 that counts as the same work.
POINTS_APART = 15.0
# Work that is held up gets less done: so much of it must be left before it counts as other work.
LEFT_OF_WORK = 0.4
# Own traffic may grow so much, and the small kind that every system has on top of it.
DISK_GROWTH, DISK_SLACK = 1.5, 20e6
NETWORK_GROWTH, NETWORK_SLACK = 2.0, 5e6


@dataclass(frozen=True, slots=True)
class Hour:
    """Means over the hour; None = not read. GPU readings are of all GPUs of the machine: rates, memory and processes add up.

    `coverage` (0-1): of the machine's own readings. `throttled`: whether a GPU had at any time a reason of its own for lower clocks.
    """

    at: datetime
    coverage: float = 0.0
    gpu_utilization_percent: float | None = None
    gpu_power_watts: float | None = None
    gpu_memory_bytes: float | None = None
    gpu_processes: float | None = None
    gpu_clock_mhz: float | None = None
    throttled: bool | None = None
    pcie_bytes_per_second: float | None = None
    cpu_percent: float | None = None
    iowait_percent: float | None = None
    cpu_pressure_percent: float | None = None
    io_pressure_percent: float | None = None
    disk_bytes_per_second: float | None = None
    disk_latency_seconds: float | None = None
    network_bytes_per_second: float | None = None


def same_work(now: Hour, then: Hour, *, disk_is_own: bool) -> bool:
    """Whether what the machine itself did in both hours was about the same, apart from how far it got.

    Where the same programs hold the same memory, GPUs and processor may have got less done: that is what is looked for. Without
    that sign, less work is other work. Disk rates that are the whole host's say nothing of its own work.
    """
    signs = [_same_memory(now, then), _same_processes(now, then)]
    if False in signs:
        return False
    held_up = True in signs
    work = _work_of(now, then)
    return (
        all(_same_share(*pair, may_fall=held_up) for pair in (work, (now.cpu_percent, then.cpu_percent)))
        and _no_more(now.network_bytes_per_second, then.network_bytes_per_second, NETWORK_GROWTH, NETWORK_SLACK)
        and (
            not disk_is_own or _no_more(now.disk_bytes_per_second, then.disk_bytes_per_second, DISK_GROWTH, DISK_SLACK)
        )
    )


def _work_of(now: Hour, then: Hour) -> tuple[float | None, float | None]:
    """Utilization, or power as a share of the other hour's where utilization is not read."""
    if now.gpu_utilization_percent is not None or then.gpu_utilization_percent is not None:
        return now.gpu_utilization_percent, then.gpu_utilization_percent
    if now.gpu_power_watts is None or not then.gpu_power_watts:
        return None, None
    return 100 * now.gpu_power_watts / then.gpu_power_watts, 100.0


def _same_memory(now: Hour, then: Hour) -> bool | None:
    """None: neither hour says. An empty GPU shows no program."""
    return _close(now.gpu_memory_bytes, then.gpu_memory_bytes, slack=lambda much: max(0.1 * much, GIB), least=GIB)


def _same_processes(now: Hour, then: Hour) -> bool | None:
    return _close(now.gpu_processes, then.gpu_processes, slack=lambda much: max(0.1 * much, 0.5), least=0.5)


def _close(now: float | None, then: float | None, *, slack: Callable[[float], float], least: float) -> bool | None:
    if now is None or then is None:
        return None if now is then else False
    if abs(now - then) > slack(then):
        return False
    return True if then >= least else None


def _same_share(now: float | None, then: float | None, *, may_fall: bool) -> bool:
    if now is None or then is None:
        return now is then
    lowest = min(then - POINTS_APART, LEFT_OF_WORK * then) if may_fall else then - POINTS_APART
    return lowest <= now <= then + POINTS_APART


def _no_more(now: float | None, then: float | None, growth: float, slack: float) -> bool:
    if now is None or then is None:
        return now is then
    return now <= growth * then + slack
