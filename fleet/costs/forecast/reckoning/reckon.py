"""`forecast`: how a month will end, out of parts that add up to it exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal

from fleet.costs.forecast.reckoning.flows import EXACT, added_up, clock
from fleet.costs.forecast.reckoning.inputs import Machine, OpenRate, PastDay
from fleet.costs.forecast.reckoning.known import known_flows
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.forecast.reckoning.usual import Usual, along, learn
from fleet.costs.ledger.intervals import Unit

ZERO = Decimal(0)
SAVES = (PartKind.STOPS, PartKind.LEASES)


@dataclass(frozen=True, slots=True)
class Part:
    """`words` and `link` are made by whoever knows the reader; `count`: of the machines that it is about, 0 = it does not matter."""

    kind: PartKind
    amount: Decimal
    count: int = 0
    words: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What will have been spent by then; low and high: 8 in 10. Of what is past all three are the same."""

    at: datetime
    amount: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class Forecast:
    """A month. `since`: up to when `spent` counts. `days`: from the month's first midnight to the next month's, each midnight and `since`.

    `unpriced`: things that are charged at a price nobody told, or in a currency without a rate; they are in no figure.
    `held` of `held_of` past forecasts ended within their band; `held_is_backtest`: reckoned afterwards from past days.
    """

    currency: str
    since: datetime
    month_start: datetime
    month_end: datetime
    zone: tzinfo
    spent: Decimal
    parts: tuple[Part, ...]
    will_end: Decimal
    low: Decimal
    high: Decimal
    days: tuple[Point, ...]
    usual: Usual
    unpriced: int = 0
    held: int = 0
    held_of: int = 0
    held_is_backtest: bool = False

    @property
    def to_come(self) -> Decimal:
        return self.will_end - self.spent

    @property
    def per_hour(self) -> Decimal:
        """Of what runs, on average until the month ends."""
        hours = clock(Unit.HOUR, self.month_end, self.since)
        running = sum((part.amount for part in self.parts if part.kind is PartKind.RUNNING), ZERO)
        return running / hours if hours else ZERO

    def passed_on(self, amount: Decimal) -> date | None:
        """The day on which so much has been spent; None = not in this month."""
        if amount <= 0:
            return self.days[0].at.astimezone(self.zone).date()
        for before, after in zip(self.days, self.days[1:], strict=False):
            if after.amount >= amount:
                share = (amount - before.amount) / (after.amount - before.amount)
                # What is reached at midnight was reached on the day that ends there.
                moment = before.at + (after.at - before.at) * float(share) - timedelta(microseconds=1)
                return max(moment, before.at).astimezone(self.zone).date()
        return None

    def chance_under(self, amount: Decimal) -> float | None:
        """How likely the month ends at or under it, straight between the points that are known; None where nothing is known of it."""
        if self.spent > amount:
            return 0.0
        if not self.to_come:
            return None if self.unpriced or not self.spent else 1.0
        points = [(self.low, 0.1), (self.will_end, 0.5), (self.high, 0.9)]
        return min(1.0, max(0.0, chance_between(points, amount)))


def chance_between(points: Sequence[tuple[Decimal, float]], amount: Decimal) -> float:
    """Along the two straight lines through three points, which go on beyond them."""
    low, middle, high = points
    (left, below), (right, above) = (low, middle) if amount < middle[0] else (middle, high)
    if left == right:
        return above if amount >= right else 0.0
    return below + (above - below) * float((amount - left) / (right - left))


@dataclass(frozen=True, slots=True)
class Known:
    """All that a forecast is made from. `spent`: by day, of the days of the month so far; history: whole days, ascending."""

    currency: str
    spent: Mapping[date, Decimal]
    rates: Sequence[OpenRate] = ()
    machines: Sequence[Machine] = ()
    history: Sequence[PastDay] = ()
    unpriced: int = 0


def forecast(known: Known, *, now: datetime, month_start: datetime, month_end: datetime, zone: tzinfo) -> Forecast:
    """`now`: up to when `known.spent` counts. What is known goes on until a plan, a lease or the month ends it; then what is usual is added."""
    # Between two times of one zone Python reckons by the clock on the wall, which is off by an hour when summer time ends.
    month_start, month_end = month_start.astimezone(UTC), month_end.astimezone(UTC)
    since = min(max(now.astimezone(UTC), month_start), month_end)
    local = since.astimezone(zone)
    usual = learn(known.history, hour=local.hour, is_weekend=local.weekday() >= 5)
    ahead = [*midnights(since, month_end, zone), month_end]
    sums = added_up(*known_flows(known.rates, known.machines, since=since), since=since, at=ahead)
    add_usual(sums, usual, since, ahead)
    spent = sum(known.spent.values(), ZERO).quantize(EXACT)
    parts = listed(spent, sums, known.machines)
    points = future(spent, sums, usual, since, ahead)
    last = points[-1] if since < month_end else Point(month_end, spent, spent, spent)
    return Forecast(
        currency=known.currency,
        since=since,
        month_start=month_start,
        month_end=month_end,
        zone=zone,
        spent=spent,
        parts=parts,
        will_end=sum((part.amount for part in parts), ZERO),
        low=last.low,
        high=last.high,
        days=(*past(known.spent, month_start, since, zone), *points),
        usual=usual,
        unpriced=known.unpriced,
    )


def midnights(start: datetime, end: datetime, zone: tzinfo) -> Iterable[datetime]:
    """Local ones, strictly between."""
    day = start.astimezone(zone).date()
    while True:
        day += timedelta(days=1)
        midnight = midnight_of(day, zone)
        if midnight >= end:
            return
        yield midnight


def midnight_of(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def add_usual(sums: dict[PartKind, list[Decimal]], usual: Usual, since: datetime, at: Sequence[datetime]) -> None:
    """What usually comes and goes. What is known to stop is no more than a part of what usually goes, so it is taken off that."""
    if not usual.new:
        return
    nothing = [ZERO] * len(at)
    new, going = list(nothing), list(nothing)
    for number, moment in enumerate(at):
        days = float(clock(Unit.HOUR, moment, since)) / 24
        new[number] = exact(along(usual.new, days))
        known = -sum((sums.get(part, nothing)[number] for part in SAVES), ZERO)
        wanted = exact(along(usual.going, days))
        others = max(wanted - max(known, ZERO), ZERO) if wanted > 0 else wanted
        # Nothing that is paid comes back: the rest of the month costs nothing at the least.
        room = sum((row[number] for row in sums.values()), new[number])
        going[number] = -min(others, max(room, ZERO))
    sums |= {part: row for part, row in ((PartKind.NEW, new), (PartKind.GOING, going)) if any(row)}


def exact(value: float) -> Decimal:
    """A figure from experience is not known to more than a cent."""
    return Decimal(value).quantize(Decimal("0.01"))


def share(value: float) -> Decimal:
    return Decimal(value).quantize(Decimal("0.000001"))


def listed(spent: Decimal, sums: Mapping[PartKind, Sequence[Decimal]], machines: Sequence[Machine]) -> tuple[Part, ...]:
    amounts = {PartKind.SPENT: spent, **{part: row[-1] for part, row in sums.items()}}
    return tuple(
        Part(kind, amounts[kind], counted(kind, machines))
        for kind in PartKind
        if kind is PartKind.SPENT or amounts.get(kind)
    )


def counted(kind: PartKind, machines: Sequence[Machine]) -> int:
    verbs = {PartKind.STOPS: {"stop", "terminate"}, PartKind.LEASES: {"terminate"}, PartKind.STARTS: {"start"}}
    wanted, is_lease = verbs.get(kind, set()), kind is PartKind.LEASES
    return sum(any(step.verb in wanted and step.is_lease is is_lease for step in one.steps) for one in machines)


def past(spent: Mapping[date, Decimal], start: datetime, since: datetime, zone: tzinfo) -> list[Point]:
    """Each midnight of the month so far, and now."""
    found, amount = [Point(start, ZERO, ZERO, ZERO)], ZERO
    day = start.astimezone(zone).date()
    while (midnight := midnight_of(day + timedelta(days=1), zone)) <= since:
        amount += spent.get(day, ZERO)
        found.append(Point(midnight, amount, amount, amount))
        day += timedelta(days=1)
    if found[-1].at < since:
        whole = sum(spent.values(), ZERO)
        found.append(Point(since, whole, whole, whole))
    return found


def future(
    spent: Decimal, sums: Mapping[PartKind, Sequence[Decimal]], usual: Usual, since: datetime, at: Sequence[datetime]
) -> list[Point]:
    if since >= at[-1]:
        return []
    return [
        banded(moment, spent, sum((row[number] for row in sums.values()), ZERO), usual, since)
        for number, moment in enumerate(at)
    ]


def banded(moment: datetime, spent: Decimal, to_come: Decimal, usual: Usual, since: datetime) -> Point:
    days = float(clock(Unit.HOUR, moment, since)) / 24
    rest = max(to_come, ZERO)
    low = spent + (rest * max(ZERO, 1 + share(along(usual.low, days)))).quantize(EXACT)
    high = spent + (rest * (1 + share(along(usual.high, days)))).quantize(EXACT)
    return Point(moment, spent + to_come, min(low, spent + to_come), max(high, spent + to_come))
