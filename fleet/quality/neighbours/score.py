"""How much the other tenants of a shared host seem to take from a machine in one hour, 0 to 100, and by which signs.

Pure: no Django, no clock. An hour is held against the calmest of the machine's own hours in which it did the same work, so that
nothing is compared across machines, models or providers. Each sign gives points between where it starts to count and where it counts
in full; the score is their sum. Weights and bounds are judgement, set so that no single sign reaches FLAGGED_AT (docs/quality.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import log
from typing import NamedTuple

from fleet.quality.neighbours.hours import Hour, same_work

BASELINE = timedelta(days=7)
LEAST_HOURS = 6
LEAST_COVERAGE = 0.8
# Of the hours with the same work the calmest ones say what the host gives when nobody else asks.
CALM_SHARE = 0.15
FLAGGED_AT, CALM_AT = 40, 25

PRESSURE_STARTS, PRESSURE_FULL = 3.0, 20.0
IOWAIT_STARTS, IOWAIT_FULL = 5.0, 25.0
LATENCY_STARTS, LATENCY_FULL, LEAST_LATENCY_SECONDS = 2.0, 8.0, 0.001
BUSIER_DISK = 1.5
CLOCKS_START, CLOCKS_FULL = 0.05, 0.20
PCIE_STARTS, PCIE_FULL, LEAST_PCIE = 0.25, 0.60, 50e6
NETWORK_STARTS, NETWORK_FULL, LEAST_NETWORK = 0.30, 0.80, 10e6
SLOWER_STARTS, SLOWER_FULL = 8.0, 40.0
# Rates of GPUs that do nothing say nothing; clocks say nothing either where pauses are in their mean.
WORKING_PERCENT, UNBROKEN_PERCENT = 30.0, 80.0


class Why(StrEnum):
    """Why there is a score, or none."""

    JUDGED = "judged"
    EXCLUSIVE = "exclusive"
    TENANCY_UNKNOWN = "tenancy_unknown"
    NOT_MEASURED = "not_measured"
    TOO_NEW = "too_new"
    OTHER_WORK = "other_work"


@dataclass(frozen=True, slots=True)
class Host:
    """`shared` None: the provider does not say. `disk_is_own`: the disk rates are this machine's and not the whole host's."""

    shared: bool | None
    disk_is_own: bool = False


class Reason(NamedTuple):
    """`before` and `now` in the unit of the reading: percent, seconds, MHz, bytes a second."""

    code: str
    before: float
    now: float
    points: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """`score` None: no evidence either way, `why` says for want of what."""

    why: Why
    score: int | None = None
    reasons: tuple[Reason, ...] = ()
    compared_hours: int = 0


class Sign(NamedTuple):
    """`worse(before, now)`: 0 where nothing got worse, 1 from where it counts in full."""

    code: str
    points: float
    read: Callable[[Hour], float | None]
    worse: Callable[[float, float], float]
    falls: bool = False


def judge_hour(now: Hour, history: Sequence[Hour], host: Host) -> Outcome:
    """`history`: earlier hours of the same machine; those older than BASELINE or badly covered are left out here."""
    if host.shared is not True:
        return Outcome(Why.EXCLUSIVE if host.shared is False else Why.TENANCY_UNKNOWN)
    if not _tells(now):
        return Outcome(Why.NOT_MEASURED)
    known = [hour for hour in history if now.at - BASELINE <= hour.at < now.at and _tells(hour)]
    if len(known) < LEAST_HOURS:
        return Outcome(Why.TOO_NEW)
    alike = [hour for hour in known if same_work(now, hour, disk_is_own=host.disk_is_own)]
    if len(alike) < LEAST_HOURS:
        return Outcome(Why.OTHER_WORK, compared_hours=len(alike))
    return _scored(now, alike, host)


def _tells(hour: Hour) -> bool:
    """Whether it is covered, and by anything that another tenant could worsen."""
    return hour.coverage >= LEAST_COVERAGE and any(
        value is not None
        for value in (
            hour.cpu_pressure_percent,
            hour.io_pressure_percent,
            hour.iowait_percent,
            hour.disk_latency_seconds,
        )
    )


def _scored(now: Hour, alike: Sequence[Hour], host: Host) -> Outcome:
    found = [reason for sign in SIGNS if (reason := _held_against(sign, now, alike)) is not None]
    if (latency := _latency(now, alike, host)) is not None:
        found.append(latency)
    # That the machine's own work got slower is the harm, and no sign of its cause.
    if found and (slower := _held_against(SLOWER, now, alike)) is not None:
        found.append(slower)
    found.sort(key=lambda reason: -reason.points)
    total = min(100, round(sum(reason.points for reason in found)))
    return Outcome(Why.JUDGED, total, tuple(found), len(alike))


def _held_against(sign: Sign, now: Hour, alike: Sequence[Hour]) -> Reason | None:
    value, before = sign.read(now), calm(sign, alike)
    if value is None or before is None:
        return None
    points = sign.points * sign.worse(before, value)
    return Reason(sign.code, before, value, points) if points > 0 else None


def calm(sign: Sign, alike: Sequence[Hour]) -> float | None:
    """The sign's value at the edge of its calmest hours. None: too few of the hours have it."""
    values = sorted((value for hour in alike if (value := sign.read(hour)) is not None), reverse=sign.falls)
    return values[int(CALM_SHARE * len(values))] if len(values) >= LEAST_HOURS else None


def _latency(now: Hour, alike: Sequence[Hour], host: Host) -> Reason | None:
    """At no more traffic. More traffic of the whole host may be another's or its own: then it counts half."""
    found = _held_against(LATENCY, now, alike)
    traffic, before = now.disk_bytes_per_second, calm(TRAFFIC, alike)
    if found is None or traffic is None or before is None or traffic <= BUSIER_DISK * before:
        return found
    return None if host.disk_is_own else Reason(found.code, found.before, found.now, found.points / 2)


def _between(low: float, high: float, value: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _more(low: float, high: float) -> Callable[[float, float], float]:
    """Percent of all time, by how many points it rose."""
    return lambda before, now: _between(low, high, now - before)


def _lost(low: float, high: float, least: float = 0.0) -> Callable[[float, float], float]:
    """By which share it fell."""
    return lambda before, now: _between(low, high, 1 - now / before) if before > least else 0.0


def _times_slower(before: float, now: float) -> float:
    if now - before < LEAST_LATENCY_SECONDS or before <= 0:
        return 0.0
    return _between(log(LATENCY_STARTS), log(LATENCY_FULL), log(now / before))


def _works(hour: Hour) -> bool:
    return (hour.gpu_utilization_percent or 0.0) >= WORKING_PERCENT


def _iowait(hour: Hour) -> float | None:
    """Where the kernel tells stalls it says the same better."""
    return hour.iowait_percent if hour.io_pressure_percent is None else None


def _unthrottled_clock(hour: Hour) -> float | None:
    unbroken = (hour.gpu_utilization_percent or 0.0) >= UNBROKEN_PERCENT
    return hour.gpu_clock_mhz if unbroken and hour.throttled is False else None


def _per_work(read: Callable[[Hour], float | None]) -> Callable[[Hour], float | None]:
    """A rate as it would be at full utilization: work that is held up moves less by itself."""

    def rate(hour: Hour) -> float | None:
        value, utilization = read(hour), hour.gpu_utilization_percent
        return 100 * value / utilization if _works(hour) and value is not None and utilization else None

    return rate


SIGNS = (
    Sign("cpu_pressure", 38, lambda hour: hour.cpu_pressure_percent, _more(PRESSURE_STARTS, PRESSURE_FULL)),
    Sign("io_pressure", 38, lambda hour: hour.io_pressure_percent, _more(PRESSURE_STARTS, PRESSURE_FULL)),
    Sign("iowait", 25, _iowait, _more(IOWAIT_STARTS, IOWAIT_FULL)),
    Sign("clocks", 25, _unthrottled_clock, _lost(CLOCKS_START, CLOCKS_FULL), falls=True),
    Sign("pcie", 20, _per_work(lambda hour: hour.pcie_bytes_per_second), _lost(PCIE_STARTS, PCIE_FULL, LEAST_PCIE), falls=True),
    Sign("network", 15, _per_work(lambda hour: hour.network_bytes_per_second), _lost(NETWORK_STARTS, NETWORK_FULL, LEAST_NETWORK), falls=True),
)  # fmt: skip
LATENCY = Sign("disk_latency", 30, lambda hour: hour.disk_latency_seconds, _times_slower)
TRAFFIC = Sign("disk_traffic", 0, lambda hour: hour.disk_bytes_per_second, lambda _before, _now: 0.0)
SLOWER = Sign(
    "slower", 20, lambda hour: hour.gpu_utilization_percent, lambda before, now: _between(SLOWER_STARTS, SLOWER_FULL, before - now), falls=True
)  # fmt: skip
