"""What was counted against what was billed, by machine (or resource), class of meters and day. Pure; exact: nothing is rounded.

A bill whose lines are for longer than a day is compared by its own periods. `counted + explained + left = billed` holds for each line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import TypeVar

ZERO = Decimal(0)
DAY = timedelta(days=1)
# What parts of an amount are kept to, so that they add up to it exactly.
STEP = Decimal("1e-14")
Period = tuple[datetime, datetime]


class MeterClass(StrEnum):
    """Meters as coarse as bills tell them apart. ALL: a bill that has one sum for a machine, whatever it is for."""

    COMPUTE = "compute"
    DISK = "disk"
    NETWORK_VOLUME = "network_volume"
    EGRESS = "egress"
    ADDRESS = "address"
    LICENCE = "licence"
    COMMITMENT = "commitment"
    CREDIT = "credit"
    TAX = "tax"
    OTHER = "other"
    ALL = "all"


class Status(StrEnum):
    MATCHED = "matched"
    MISSING_HERE = "missing_here"
    MISSING_THERE = "missing_there"
    DIFFERS = "differs"


class ReasonKind(StrEnum):
    TOLERANCE = "tolerance"
    CREDIT = "credit"
    TAX = "tax"
    FREE_TIER = "free_tier"
    BORDER = "border"
    CURRENCY = "currency"
    SILENT = "silent"
    EDGES = "edges"
    MINIMUM = "minimum"
    TIME = "time"
    PRICE = "price"
    UNPRICED = "unpriced"
    NOT_READ = "not_read"


# Never a part of what a machine's one sum is for.
APART = {MeterClass.CREDIT, MeterClass.TAX}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """`machine`: its id here, 0 where there is none; then `name` is the resource, or the provider's id of a machine never listed here."""

    machine: int
    name: str
    meter: MeterClass
    currency: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted over [start, end), evenly. `rate`: per hour, where it is by the hour. `runs`: starts within it."""

    key: Key
    start: datetime
    end: datetime
    amount: Decimal
    rate: Decimal | None = None
    runs: int = 0
    unpriced: bool = False
    converted: bool = False


@dataclass(frozen=True, slots=True)
class Billed:
    """`hours`: for which it was billed, where the line tells."""

    key: Key
    start: datetime
    end: datetime
    amount: Decimal
    hours: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A time in which nobody knows whether it was charged, and what an hour of it costs. `silent`: because nobody could look."""

    key: Key
    start: datetime
    end: datetime
    rate: Decimal
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """How much of a difference is explained, and by what; `evidence` is JSON-ready."""

    kind: ReasonKind
    amount: Decimal
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison, with all that rules look at."""

    key: Key
    start: datetime
    end: datetime
    counted: tuple[Counted, ...] = ()
    billed: tuple[Billed, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    reasons: tuple[Reason, ...] = ()
    status: Status = Status.MATCHED

    @property
    def counted_amount(self) -> Decimal:
        return sum((one.amount for one in self.counted), ZERO)

    @property
    def billed_amount(self) -> Decimal:
        return sum((one.amount for one in self.billed), ZERO)

    @property
    def difference(self) -> Decimal:
        return self.billed_amount - self.counted_amount

    @property
    def explained(self) -> Decimal:
        return sum((reason.amount for reason in self.reasons), ZERO)

    @property
    def left(self) -> Decimal:
        return self.difference - self.explained


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The same is what differs by no more than the larger of the two."""

    amount: Decimal = Decimal("0.01")
    share: Decimal = Decimal("0.01")

    def holds(self, line: Line) -> bool:
        return abs(line.difference) <= max(self.amount, abs(line.billed_amount) * self.share)


R = TypeVar("R", "Counted", "Billed")


def compare(counted: Iterable[Counted], billed: Iterable[Billed], doubts: Iterable[Doubt] = ()) -> Iterator[Line]:
    """Lines without a verdict, by key and time. What one side has and the other does not is a line too."""
    mine, theirs, unsure = list(counted), list(billed), list(doubts)
    whole = {(one.key.machine, one.key.name) for one in theirs if one.key.meter is MeterClass.ALL}
    sides = (by_key(mine, whole), by_key(theirs, whole), by_key(unsure, whole))
    for key in sorted(sides[0].keys() | sides[1].keys()):
        yield from lines_of(key, *(side.get(key, []) for side in sides))


def by_key(rows: Iterable[Counted | Billed | Doubt], whole: set[tuple[int, str]]) -> dict[Key, list]:  # type: ignore[type-arg]  # of whichever of the three was given
    found: dict[Key, list[Counted | Billed | Doubt]] = defaultdict(list)
    for row in rows:
        key = row.key
        if (key.machine, key.name) in whole and key.meter not in APART:
            key = replace(key, meter=MeterClass.ALL)
        found[key].append(row)
    return found


def lines_of(key: Key, counted: list[Counted], billed: list[Billed], doubts: list[Doubt]) -> Iterator[Line]:
    periods = merged((one.start, one.end) for one in billed)
    parts = [part for one in counted for part in cut(one, periods)]
    days = {day_of(part.start) for part in parts if span_at(part.start, periods) is None}
    spans = sorted([*periods, *days_outside(days, periods)])
    here, there = by_span(parts, spans), by_span(billed, spans)
    for span in spans:
        if span in here or span in there:
            unsure = tuple(one for one in doubts if one.start < span[1] and one.end > span[0])
            yield Line(key, *span, tuple(here.get(span, ())), tuple(there.get(span, ())), unsure)


def by_span(rows: Iterable[R], spans: Sequence[Period]) -> dict[Period, list[R]]:
    """No row reaches over the edge of a span."""
    found: dict[Period, list[R]] = defaultdict(list)
    for row in rows:
        if (span := span_at(row.start, spans)) is not None:
            found[span].append(row)
    return found


def span_at(at: datetime, spans: Sequence[Period]) -> Period | None:
    """Of spans in order that do not overlap."""
    number = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return spans[number] if number >= 0 and at < spans[number][1] else None


def merged(periods: Iterable[Period]) -> list[Period]:
    """Periods that overlap become one; those that only touch stay apart."""
    found: list[Period] = []
    for start, end in sorted(periods):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def day_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def days_outside(days: Iterable[datetime], periods: Sequence[Period]) -> Iterator[Period]:
    """What of each day no period of the bill covers; a day that a period cuts through is left in pieces."""
    for day in sorted(days):
        edges = sorted({day, day + DAY, *(edge for period in periods for edge in period if day < edge < day + DAY)})
        for start, end in pairwise(edges):
            if span_at(start, periods) is None:
                yield start, end


def cut(one: Counted, periods: Sequence[Period]) -> Iterator[Counted]:
    """At days and at the edges of the bill's periods. The last part takes what is left, so that the parts add up exactly."""
    inside = {edge for period in periods for edge in period if one.start < edge < one.end}
    day = day_of(one.start) + DAY
    while day < one.end:
        # Within a longer period of the bill, a cut at midnight changes nothing.
        inside.add(day)
        day += DAY
    edges = [one.start, *sorted(inside), one.end]
    seconds, rest, runs = Decimal((one.end - one.start).total_seconds()), one.amount, one.runs
    for start, end in pairwise(edges):
        part = (one.amount * Decimal((end - start).total_seconds()) / seconds).quantize(STEP)
        share = rest if end == one.end else part
        yield replace(one, start=start, end=end, amount=share, runs=runs)
        rest, runs = rest - share, 0
