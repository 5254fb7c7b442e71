"""When a schedule starts and stops its machines: moments on somebody's clock. Pure: no Django, and what time it is, is told.

A start belongs to an office day of `days`: no holiday, or a day that is worked instead of another. A stop belongs to each of `days` and to
every office day: what runs on a holiday, by whoever started it, is stopped as on any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from itertools import count, islice

from fleet.idle.hours import OfficeHours, is_office_day

DAY = timedelta(days=1)
# Beyond the longest holidays: a schedule of one weekday that had none in so long a time has none.
LOOKS_BACK_DAYS = LOOKS_AHEAD_DAYS = 60


class Turn(StrEnum):
    START = "start"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Clock:
    """On `days` (0 = Monday) from `start` until `stop` on the clock of `zone`; on the next day where the stop is no later than the start.

    Either may be None. `holidays`: as in fleet.idle.hours.
    """

    days: frozenset[int]
    start: time | None
    stop: time | None
    zone: tzinfo
    holidays: str = ""

    @property
    def over_midnight(self) -> bool:
        return self.start is not None and self.stop is not None and self.stop <= self.start


@dataclass(frozen=True, slots=True)
class Edge:
    """`at` is UTC. Of two at one moment the start is the later."""

    at: datetime
    turn: Turn

    @property
    def order(self) -> tuple[datetime, bool]:
        return self.at, self.turn is Turn.START


def last_edge(clock: Clock, now: datetime) -> Edge | None:
    """The newest that has come. What came before it counts no more: after a downtime machines are as the last one wants them."""
    today = now.astimezone(clock.zone).date()
    for back in range(LOOKS_BACK_DAYS):
        # The edges of one day may lie on the next, and those of the day after before them: two days decide.
        days = (today - back * DAY, today - (back + 1) * DAY)
        come = [edge for day in days for edge in edges_of(clock, day) if edge.at <= now]
        if come:
            return max(come, key=lambda edge: edge.order)
    return None


def next_edges(clock: Clock, now: datetime, most: int) -> list[Edge]:
    """Those that come first, in their order."""
    first = now.astimezone(clock.zone).date() - DAY
    found: list[Edge] = []
    for ahead in islice(count(), LOOKS_AHEAD_DAYS):
        found += [edge for edge in edges_of(clock, first + ahead * DAY) if edge.at > now]
        # A stop over midnight lies behind a start of the day after at most.
        if len(found) >= most + 2:
            break
    return sorted(found, key=lambda edge: edge.order)[:most]


def edges_of(clock: Clock, day: date) -> Iterator[Edge]:
    """Of what begins on that day; a stop may lie on the next."""
    works = is_office_day(OfficeHours(clock.days, time(), time(), clock.zone, clock.holidays), day)
    if clock.start is not None and works:
        yield Edge(_first(day, clock.start, clock.zone), Turn.START)
    if clock.stop is not None and (works or day.weekday() in clock.days):
        yield Edge(_last(day + DAY if clock.over_midnight else day, clock.stop, clock.zone), Turn.STOP)


def _first(day: date, clock: time, zone: tzinfo) -> datetime:
    """A time that a clock shows twice is the first of the two; one that it leaves out is as much later as it was put forward."""
    return datetime.combine(day, clock.replace(fold=0), zone).astimezone(UTC)


def _last(day: date, clock: time, zone: tzinfo) -> datetime:
    """The second of the two, so that nobody loses the hour; one that is left out as above."""
    return max(_first(day, clock, zone), datetime.combine(day, clock.replace(fold=1), zone).astimezone(UTC))
