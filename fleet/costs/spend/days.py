"""Days of a team's time zone as instants of UTC. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Day:
    """[since, until) in UTC: 23 or 25 hours long where clocks are changed."""

    day: date
    since: datetime
    until: datetime


def begin_of(day: date, zone: ZoneInfo) -> datetime:
    """Its first instant, also where midnight is left out."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def day_of(moment: datetime, zone: ZoneInfo) -> date:
    return moment.astimezone(zone).date()


def days_between(first: date, past_last: date, zone: ZoneInfo, *, now: datetime) -> Iterator[Day]:
    """As far as they have gone at `now`: days that have not begun are left out."""
    for number in range((past_last - first).days):
        day = first + number * ONE_DAY
        since, until = begin_of(day, zone), min(begin_of(day + ONE_DAY, zone), now)
        if since < until:
            yield Day(day, since, until)
