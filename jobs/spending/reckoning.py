"""What the time of a job on one machine cost: prices of the ledger x the job's part of the machine. Pure and exact.

A machine that several hold at once is shared as the ledger's hours of shared machines are (fleet.costs.attribution.shares): each moment equally by the
owners of its holds, and an owner's part by what they hold it for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from fleet.costs.attribution.shares import Held, held_shares
from fleet.costs.ledger.charges import Rules, amount_of, months_between
from fleet.costs.ledger.intervals import Interval, Meter, Unit

HOUR = timedelta(hours=1)
# A start's minimum is charged after the run, for time that no job had.
BEYOND_TIME = frozenset({Meter.MINIMUM, Meter.ADJUSTMENT})
# One of these holds at any time that anything is known of; the other meters come beside them.
BASE = frozenset({Meter.COMPUTE, Meter.DISK_STOPPED, Meter.NOTHING})
# As the ledger's own sums reckon a month, and no quantum: that is paid a start.
RULES = Rules()
Amounts = dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class Stay:
    """A job's time on one machine: its own hold, and those that count beside it. end None: it goes on."""

    own: Held
    others: tuple[Held, ...] = ()

    def share(self, start: datetime, end: datetime) -> Fraction:
        parts = held_shares((self.own, *self.others), start, end)
        return parts.get((self.own.owner_id, self.own.job), Fraction(0))


@dataclass(frozen=True, slots=True)
class Charged:
    """`amounts`: by currency. `per_hour`: what it costs now, None where it has ended or nobody knows. `unpriced_seconds`: time at no known price."""

    amounts: Amounts = field(default_factory=dict)
    per_hour: Amounts | None = None
    unpriced_seconds: float = 0.0


def charge(stay: Stay, intervals: Iterable[Interval], *, now: datetime) -> Charged:
    """`intervals`: all that the ledger has of the machine over that time."""
    known = [one for one in intervals if one.meter not in BEYOND_TIME]
    end = min(stay.own.end or now, now)
    amounts: Amounts = defaultdict(Decimal)
    covered = timedelta(0)
    for one, start, stop in _pieces(known, stay.own.start, end):
        amount = _amount(one, start, stop)
        if amount is not None:
            amounts[one.price.currency] += times(amount, stay.share(start, stop))
        if one.meter in BASE and (amount is not None or one.meter is Meter.NOTHING):
            covered += stop - start
    unpriced = max(timedelta(0), end - stay.own.start - covered)
    goes_on = stay.own.end is None
    return Charged(dict(amounts), _per_hour(stay, known, now) if goes_on else None, unpriced.total_seconds())


def _pieces(
    intervals: Sequence[Interval], start: datetime, end: datetime
) -> Iterator[tuple[Interval, datetime, datetime]]:
    for one in intervals:
        since, until = max(one.start, start), min(one.end or end, end)
        yield from ((one, begins, ends) for _month, begins, ends in months_between(since, until))


def _amount(one: Interval, start: datetime, stop: datetime) -> Decimal | None:
    """None: nothing is charged, or nobody knows what."""
    seconds = round((stop - start).total_seconds())
    if one.price.unit is Unit.ONCE:
        return _spread(one, seconds)
    (month, *_rest), *_more = months_between(start, stop)
    return amount_of(one.price, seconds, month, RULES)


def _spread(one: Interval, seconds: int) -> Decimal | None:
    """A charge that comes once is spread over its interval; of one without an end nobody can tell a job's part."""
    if one.price.unit_price is None or not one.seconds:
        return None
    return one.price.unit_price * one.price.quantity * seconds / one.seconds


def _per_hour(stay: Stay, intervals: Sequence[Interval], now: datetime) -> Amounts | None:
    holds_now = [one for one in intervals if one.start <= now and (one.end is None or one.end > now)]
    amounts: Amounts = defaultdict(Decimal)
    share = stay.share(now, now + timedelta(seconds=1))
    for one in holds_now:
        an_hour = replace(one, start=now, end=now + HOUR) if one.end is None else one
        amount = _amount(an_hour, now, now + HOUR)
        if amount is not None:
            amounts[one.price.currency] += times(amount, share)
        elif one.meter is Meter.COMPUTE:
            return None
    return dict(amounts) if amounts or any(one.meter is Meter.NOTHING for one in holds_now) else None


def times(amount: Decimal, share: Fraction) -> Decimal:
    return amount * share.numerator / share.denominator
