"""The seven states of a GPU, and the one function that decides which of them a GPU is in.

Nothing else in Rackrent may say what "held idle" or "stalled" means: pages, costs, idle rules and alerts all ask
`classify`. It is pure: no Django, no clock (`now` is in the evidence).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct


class GpuState(StrEnum):
    WORKING = "working"
    HELD_IDLE = "held"
    FREE = "free"
    STARVED = "starved"
    STALLED = "stalled"
    UNKNOWN = "unknown"
    STOPPED = "stopped"


# Buys nothing while rented: the first two are "idle money", with stalled they are what the Idle page calls wasted.
IDLE_MONEY = frozenset({GpuState.HELD_IDLE, GpuState.FREE})
BUYS_NOTHING = IDLE_MONEY | {GpuState.STALLED}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where one state ends and the next begins. Percent is 0-100, ratios 0-1."""

    busy_percent: float = 5.0
    starved_percent: float = 60.0
    # A GPU that says 100 % while drawing about what it draws at rest executes nothing that computes.
    stalled_percent: float = 95.0
    stalled_power_ratio: float = 0.35
    stalled_sm_activity: float = 0.02
    # Driver and context leave some memory in use on an empty GPU.
    held_memory_bytes: int = 1 << 30
    io_wait_percent: float = 10.0
    io_pressure_percent: float = 10.0
    stale_after: timedelta = timedelta(seconds=30)
    # Readings further apart than this are not "unbroken": nobody knows what the GPU did between them.
    unbroken_gap: timedelta = timedelta(minutes=2)


# Structs: ingest judges every sample, and a frozen dataclass of this size takes sixteen times as long to make.
class Evidence(Struct, frozen=True, gc=False):
    """What is known of one GPU at `now`. None = not read; it never counts as zero.

    powered: False when the provider shows the machine as off. Percent 0-100, ratios 0-1, memory in bytes.
    """

    now: datetime
    powered: bool | None = None
    sampled_at: datetime | None = None
    lost: bool = False
    utilization_percent: float | None = None
    sm_activity: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    memory_used_bytes: int | None = None
    process_count: int | None = None
    # When the two below were read: waiting that a machine reported an hour ago explains nothing of now. None = with the rest.
    host_sampled_at: datetime | None = None
    cpu_iowait_percent: float | None = None
    pressure_io_percent: float | None = None


class Verdict(Struct, frozen=True):
    """A state and the readings that decided it, as (name, value) pairs a page can show."""

    state: GpuState
    because: tuple[tuple[str, float | str], ...] = ()


DEFAULTS = Thresholds()


def classify(evidence: Evidence, limits: Thresholds = DEFAULTS) -> Verdict:
    """The state of one GPU. Absent, stale or lost evidence is UNKNOWN; an off machine is STOPPED whatever it last said."""
    if evidence.powered is False:
        return Verdict(GpuState.STOPPED)
    if unreadable := _why_unknown(evidence, limits):
        return Verdict(GpuState.UNKNOWN, (("reason", unreadable),))
    utilization = evidence.utilization_percent
    assert utilization is not None
    if not shows_work(utilization_percent=utilization, sm_activity=evidence.sm_activity, limits=limits):
        return _resting(evidence, limits, utilization)
    return _running(evidence, limits, utilization)


def shows_work(
    *, utilization_percent: float | None, sm_activity: float | None, limits: Thresholds = DEFAULTS
) -> bool | None:
    """Whether one reading shows work; None where it does not tell. Busy and idle times are counted by this."""
    if utilization_percent is None:
        return None
    computes = sm_activity is not None and sm_activity > limits.stalled_sm_activity
    return computes or utilization_percent >= limits.busy_percent


def _why_unknown(evidence: Evidence, limits: Thresholds) -> str | None:
    if evidence.lost:
        return "lost"
    if evidence.sampled_at is None:
        return "no_report"
    if evidence.now - evidence.sampled_at > limits.stale_after:
        return "silent"
    if evidence.utilization_percent is None:
        return "not_read"
    return None


def _resting(evidence: Evidence, limits: Thresholds, utilization: float) -> Verdict:
    because: list[tuple[str, float | str]] = [("utilization_percent", utilization)]
    if evidence.memory_used_bytes is None and evidence.process_count is None:
        return Verdict(GpuState.UNKNOWN, (("reason", "memory_not_read"), *because))
    used = evidence.memory_used_bytes
    if used is not None:
        because.append(("memory_used_bytes", used))
    held = (used or 0) >= limits.held_memory_bytes or bool(evidence.process_count)
    if evidence.process_count:
        because.append(("process_count", evidence.process_count))
    return Verdict(GpuState.HELD_IDLE if held else GpuState.FREE, tuple(because))


def _running(evidence: Evidence, limits: Thresholds, utilization: float) -> Verdict:
    because: tuple[tuple[str, float | str], ...] = (("utilization_percent", utilization),)
    if utilization >= limits.stalled_percent and (stalled := _stalled_because(evidence, limits)):
        return Verdict(GpuState.STALLED, because + stalled)
    if utilization < limits.starved_percent and (waits := _waits_because(evidence, limits)):
        return Verdict(GpuState.STARVED, because + waits)
    return Verdict(GpuState.WORKING, because)


def _stalled_because(evidence: Evidence, limits: Thresholds) -> tuple[tuple[str, float | str], ...]:
    if evidence.sm_activity is not None:
        # The honest signal wins where the chip has it; power alone would also flag memory-bound kernels.
        idle = evidence.sm_activity <= limits.stalled_sm_activity
        return (("sm_activity", evidence.sm_activity),) if idle else ()
    if evidence.power_watts is None or not evidence.power_limit_watts:
        return ()
    ratio = evidence.power_watts / evidence.power_limit_watts
    return (("power_watts", evidence.power_watts),) if ratio < limits.stalled_power_ratio else ()


def _waits_because(evidence: Evidence, limits: Thresholds) -> tuple[tuple[str, float | str], ...]:
    read_at = evidence.host_sampled_at
    if read_at is not None and evidence.now - read_at > limits.stale_after:
        return ()
    signals = (
        ("cpu_iowait_percent", evidence.cpu_iowait_percent, limits.io_wait_percent),
        ("pressure_io_percent", evidence.pressure_io_percent, limits.io_pressure_percent),
    )
    return tuple((name, value) for name, value, limit in signals if value is not None and value >= limit)


def worst(states: list[GpuState]) -> GpuState:
    """The state a machine is named by: the one a person should hear of first."""
    order = (
        GpuState.STALLED,
        GpuState.HELD_IDLE,
        GpuState.STARVED,
        GpuState.UNKNOWN,
        GpuState.FREE,
        GpuState.WORKING,
        GpuState.STOPPED,
    )
    return next((state for state in order if state in states), GpuState.UNKNOWN)
