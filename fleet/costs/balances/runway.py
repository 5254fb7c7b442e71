"""How long a balance lasts at what is charged now, and when that is worth an alert. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from fleet.costs.forecast.reckoning.flows import clock, seconds_between
from fleet.costs.forecast.reckoning.inputs import OpenRate
from fleet.costs.ledger.intervals import Unit

HOUR_SECONDS = 3600
# What is over has to be well over: a burn rate that sways around a limit is one message.
CLEARS_AT = Decimal("1.1")
# Longer than this nobody plans, and dates end.
LONGEST_HOURS = Decimal(24 * 366 * 20)
URGENT, WARNING = "urgent", "warning"


@dataclass(frozen=True, slots=True)
class Lasts:
    """`left`: now. `hours` None: nothing is charged that is known, or for longer than anybody plans. `ends_at`: when it is zero."""

    left: Decimal
    hours: Decimal | None
    ends_at: datetime | None


def lasts(*, amount: Decimal, read_at: datetime, per_hour: Decimal, now: datetime) -> Lasts:
    """Of a balance that was read at a moment and is spent at `per_hour` since."""
    return at_rate(amount - per_hour * seconds_between(read_at, now) / HOUR_SECONDS, per_hour, now)


def at_rate(left: Decimal, per_hour: Decimal, now: datetime) -> Lasts:
    if left <= 0:
        return Lasts(left, Decimal(0), now)
    hours = left / per_hour if per_hour > 0 else None
    if hours is None or hours > LONGEST_HOURS:
        return Lasts(left, None, None)
    return Lasts(left, hours, (now + timedelta(hours=float(hours))).astimezone(UTC))


def spent_between(rates: list[OpenRate], start: datetime, end: datetime) -> Decimal:
    """What these intervals of the ledger came to within [start, end)."""
    return sum((_of(rate, start, end) for rate in rates), Decimal(0))


def _of(rate: OpenRate, start: datetime, end: datetime) -> Decimal:
    since, until = max(rate.start, start), min(rate.end or end, end)
    if since >= until:
        return Decimal(0)
    if rate.unit in {Unit.HOUR, Unit.GB_MONTH, Unit.MONTH}:
        return rate.per_unit * clock(rate.unit, until, since)
    if rate.end is None:
        return rate.per_unit if rate.start >= start else Decimal(0)
    return rate.per_unit * seconds_between(since, until) / seconds_between(rate.start, rate.end)


def severity_of(found: Lasts, *, warning_hours: int, urgent_hours: int, stands: str = "") -> str:
    """What is to be told: urgent, warning, or nothing. `stands`: what is told so far, which ends a tenth above its limit."""
    if found.hours is None:
        return ""
    if found.hours <= urgent_hours or (stands == URGENT and found.hours <= urgent_hours * CLEARS_AT):
        return URGENT
    return WARNING if found.hours <= warning_hours or (stands and found.hours <= warning_hours * CLEARS_AT) else ""
