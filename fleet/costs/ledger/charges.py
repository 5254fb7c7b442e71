"""From intervals to money: per month of UTC, with the provider's quantum and minimum. Exact; rounded once, where a line is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import groupby

from fleet.costs.ledger.intervals import Interval, Meter, Price, Unit
from fleet.providers.base import StopSemantics

HOUR_SECONDS = 3600
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Rules:
    """How a provider counts. quantum and minimum: seconds. storage_month_hours None: the hours that the month has."""

    quantum_seconds: int = 1
    minimum_seconds: int = 0
    storage_month_hours: int | None = None

    @classmethod
    def of(cls, semantics: StopSemantics) -> Rules:
        return cls(semantics.quantum_seconds, semantics.minimum_seconds)


@dataclass(frozen=True, slots=True)
class Charge:
    """One interval within one month. amount None: charged, and nobody knows what. `month`: its first instant."""

    interval: Interval
    month: datetime
    seconds: int
    amount: Decimal | None


@dataclass(frozen=True, slots=True)
class Line:
    """What one machine cost on one meter in one month. `unpriced_seconds`: time with no price to reckon with, which `amount` lacks."""

    machine: str
    meter: Meter
    month: datetime
    currency: str
    seconds: int
    amount: Decimal
    unpriced_seconds: int

    @property
    def rounded(self) -> Decimal:
        return self.amount.quantize(CENT, ROUND_HALF_EVEN)


def charges_of(intervals: Iterable[Interval], *, rules: Rules, until: datetime) -> Iterator[Charge]:
    """Of everything before `until`; what is open counts up to there."""
    for one in with_minimums(intervals, rules):
        end = min(one.end or until, until)
        for month, start, stop in months_between(one.start, end):
            seconds = round((stop - start).total_seconds())
            yield Charge(one, month, seconds, amount_of(one.price, seconds, month, rules))


def with_minimums(intervals: Iterable[Interval], rules: Rules) -> Iterator[Interval]:
    """Each interval, and after each run that has ended what its provider charges beyond its time: an interval that lies after it."""
    found = list(intervals)
    yield from found
    compute = sorted((one for one in found if one.meter is Meter.COMPUTE), key=run_key)
    for _, parts in groupby(compute, key=lambda one: (one.machine, one.run)):
        run = list(parts)
        last = run[-1]
        if last.end is None:
            continue
        beyond = billed_seconds(sum(one.seconds or 0 for one in run), rules) - sum(one.seconds or 0 for one in run)
        if beyond:
            yield Interval(
                last.machine,
                Meter.MINIMUM,
                last.price,
                last.end,
                last.end + timedelta(seconds=beyond),
                seen_at=last.seen_at,
                market=last.market,
                run=last.run,
            )


def run_key(one: Interval) -> tuple[str, int, datetime]:
    return one.machine, one.run, one.start


def billed_seconds(seconds: int, rules: Rules) -> int:
    quanta = -(-seconds // rules.quantum_seconds)
    return max(quanta * rules.quantum_seconds, rules.minimum_seconds)


def amount_of(price: Price, seconds: int, month: datetime, rules: Rules) -> Decimal | None:
    if price.unit is Unit.NONE or price.unit_price is None:
        return None
    whole = HOUR_SECONDS if price.unit is Unit.HOUR else month_seconds(month, rules)
    return price.unit_price * price.quantity * seconds / whole


def month_seconds(month: datetime, rules: Rules) -> int:
    if rules.storage_month_hours is not None:
        return rules.storage_month_hours * HOUR_SECONDS
    return round((next_month(month) - month).total_seconds())


def months_between(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, datetime]]:
    """(month, start, end) of each part of [start, end) that lies in one month of UTC."""
    while start < end:
        month = start.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        stop = min(end, next_month(month))
        yield month, start, stop
        start = stop


def next_month(month: datetime) -> datetime:
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


def lines_of(charges: Iterable[Charge]) -> list[Line]:
    """By machine, meter, month and currency. Nothing that was rounded is added up."""
    found: dict[tuple[str, Meter, datetime, str], list[Charge]] = {}
    for one in charges:
        key = (one.interval.machine, one.interval.meter, one.month, one.interval.price.currency)
        found.setdefault(key, []).append(one)
    return [line_of(key, parts) for key, parts in sorted(found.items())]


def line_of(key: tuple[str, Meter, datetime, str], parts: list[Charge]) -> Line:
    machine, meter, month, currency = key
    no_price = meter not in {Meter.NOTHING, Meter.UNKNOWN}
    return Line(
        machine,
        meter,
        month,
        currency,
        seconds=sum(one.seconds for one in parts),
        amount=sum((one.amount for one in parts if one.amount is not None), Decimal(0)),
        unpriced_seconds=sum(one.seconds for one in parts if one.amount is None and no_price),
    )
