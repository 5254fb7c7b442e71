"""Why a line of a bill is not what was counted: one rule for each kind of reason. Pure.

A rule looks at a line and at what of its difference no earlier rule explained, and gives what it explains: never more than that, nor the
other way round. What no rule explains is left to explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.costs.bills.matching import (
    ZERO,
    Billed,
    Counted,
    Doubt,
    Line,
    MeterClass,
    Reason,
    ReasonKind,
    Status,
    Tolerance,
    compare,
)

HOUR = Decimal(3600)
HALF_CENT = Decimal("0.005")
# No clock on earth is further from UTC: a provider's month ends at most so far from ours.
CLOCKS = timedelta(hours=14)
# How far a provider's rate of the day lies from that of a bank.
RATE_SHARE = Decimal("0.05")
# Two times, or two prices, that are the same.
SAME = Decimal("0.01")
MINUTE = Decimal(60) / HOUR
BY_THE_HOUR = {MeterClass.COMPUTE, MeterClass.ALL}
# What listings of machines do not have.
UNLISTED = {MeterClass.DISK, MeterClass.NETWORK_VOLUME, MeterClass.EGRESS, MeterClass.ADDRESS, MeterClass.LICENCE}


@dataclass(frozen=True, slots=True)
class Terms:
    """How the provider counts, and the month [start, end) that is compared."""

    start: datetime
    end: datetime
    quantum_seconds: int = 1
    minimum_seconds: int = 0


Rule = Callable[[Line, Decimal, Terms], Reason | None]


def reconcile(
    counted: Iterable[Counted],
    billed: Iterable[Billed],
    terms: Terms,
    *,
    doubts: Iterable[Doubt] = (),
    tolerance: Tolerance | None = None,
) -> list[Line]:
    """Every line with its verdict and its reasons. What is the same within the tolerance is matched, and its rest explained by that."""
    return [judged(line, terms, tolerance or Tolerance()) for line in compare(counted, billed, doubts)]


def judged(line: Line, terms: Terms, tolerance: Tolerance) -> Line:
    if tolerance.holds(line):
        rest = line.difference
        return replace(line, reasons=(Reason(ReasonKind.TOLERANCE, rest),) if rest else (), status=Status.MATCHED)
    reasons: list[Reason] = []
    for rule in RULES:
        left = line.difference - sum((reason.amount for reason in reasons), ZERO)
        if left and (found := rule(line, left, terms)):
            reasons.append(replace(found, amount=towards(left, found.amount)))
    told = tuple(reason for reason in reasons if reason.amount)
    return replace(line, reasons=told, status=status_of(line))


def status_of(line: Line) -> Status:
    if not line.counted_amount:
        return Status.MISSING_HERE
    return Status.DIFFERS if line.billed else Status.MISSING_THERE


def towards(left: Decimal, amount: Decimal) -> Decimal:
    """`amount`, but no more than is left, and nothing the other way."""
    return min(max(amount, ZERO), left) if left > 0 else max(min(amount, ZERO), left)


def credit(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    return Reason(ReasonKind.CREDIT, left) if line.key.meter is MeterClass.CREDIT else None


def tax(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    return Reason(ReasonKind.TAX, left) if line.key.meter is MeterClass.TAX else None


def free_tier(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    """Less was billed for data out than was counted."""
    return Reason(ReasonKind.FREE_TIER, left) if line.key.meter is MeterClass.EGRESS and left < 0 else None


def border(line: Line, left: Decimal, terms: Terms) -> Reason | None:
    """Counted and not billed, within some hours of the end of the month or of its beginning."""
    if line.billed:
        return None
    start, end = min(one.start for one in line.counted), max(one.end for one in line.counted)
    first = start - terms.start < timedelta(minutes=1) and end - terms.start <= CLOCKS
    last = terms.end - end < timedelta(minutes=1) and terms.end - start <= CLOCKS
    if not (first or last):
        return None
    return Reason(ReasonKind.BORDER, left, {"start": start.isoformat(), "end": end.isoformat()})


def currency(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    if not any(one.converted for one in line.counted) or abs(left) > abs(line.billed_amount) * RATE_SHARE:
        return None
    return Reason(ReasonKind.CURRENCY, left)


def silent(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    return doubted(line, left, ReasonKind.SILENT, [one for one in line.doubts if one.silent])


def edges(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    return doubted(line, left, ReasonKind.EDGES, [one for one in line.doubts if not one.silent])


def doubted(line: Line, left: Decimal, kind: ReasonKind, doubts: list[Doubt]) -> Reason | None:
    """As much as the time that is in doubt costs, either way."""
    if not doubts:
        return None
    spans = [(max(one.start, line.start), min(one.end, line.end), one.rate) for one in doubts]
    worth = sum((rate * seconds(start, end) / HOUR for start, end, rate in spans), ZERO)
    evidence = {"start": min(span[0] for span in spans).isoformat(), "end": max(span[1] for span in spans).isoformat()}
    return Reason(kind, worth if left > 0 else -worth, evidence)


def minimum(line: Line, left: Decimal, terms: Terms) -> Reason | None:
    """A start costs up to a quantum or the minimum more; each line of a bill may be rounded to a cent."""
    runs, rate = sum(one.runs for one in line.counted), highest_rate(line)
    most = runs * max(terms.quantum_seconds - 1, terms.minimum_seconds, 0) * (rate or ZERO) / HOUR
    rounding = HALF_CENT * len(line.billed)
    if left > most + rounding or left < -rounding:
        return None
    return Reason(ReasonKind.MINIMUM, left, {"starts": str(runs)})


def time(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    """The bill tells its hours: at what was counted for one, they make its amount."""
    told, rate = told_hours(line), highest_rate(line)
    if told is None or rate is None or same(told, hours(line)) or not same(line.billed_amount, told * rate):
        return None
    return Reason(ReasonKind.TIME, left, {"billed_hours": plain(told), "counted_hours": plain(hours(line))})


def price(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    """The bill tells the hours that were counted; or more, for a machine that ran all the time: more of it there is not."""
    rate, counted = highest_rate(line), hours(line)
    if rate is None or not counted or not line.billed_amount or line.key.meter not in BY_THE_HOUR:
        return None
    told = told_hours(line)
    all_the_time = told is None and left > 0 and counted >= seconds(line.start, line.end) / HOUR - MINUTE
    if not all_the_time and (told is None or not same(told, counted)):
        return None
    evidence = {"billed_price": plain(line.billed_amount / counted), "counted_price": plain(rate)}
    return Reason(ReasonKind.PRICE, left, evidence)


def unpriced(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    if left < 0 or not any(one.unpriced for one in line.counted):
        return None
    return Reason(ReasonKind.UNPRICED, left)


def not_read(line: Line, left: Decimal, _terms: Terms) -> Reason | None:
    """Billed alone, and of a kind that listings do not have."""
    return Reason(ReasonKind.NOT_READ, left) if line.key.meter in UNLISTED and not line.counted_amount else None


RULES: tuple[Rule, ...] = (
    credit,
    tax,
    free_tier,
    border,
    currency,
    unpriced,
    not_read,
    price,
    silent,
    edges,
    time,
    minimum,
)


def seconds(start: datetime, end: datetime) -> Decimal:
    return Decimal((end - start).total_seconds())


def hours(line: Line) -> Decimal:
    """For which it was counted by the hour."""
    return sum((seconds(one.start, one.end) / HOUR for one in line.counted if one.rate is not None), ZERO)


def told_hours(line: Line) -> Decimal | None:
    told = [one.hours for one in line.billed]
    return sum((one for one in told if one is not None), ZERO) if told and None not in told else None


def highest_rate(line: Line) -> Decimal | None:
    return max((one.rate for one in line.counted if one.rate is not None), default=None)


def same(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= max(abs(one), abs(other)) * SAME


def plain(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.0001')).normalize():f}"
