"""Full hours in UTC, in which money is attributed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)


def hour_of(moment: datetime) -> datetime:
    """The full hour that `moment` lies in."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def hour_after(moment: datetime) -> datetime:
    """The first full hour at or after `moment`."""
    hour = hour_of(moment)
    return hour if hour == moment else hour + HOUR


def hours_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """Every full hour of [start, end), which begins at one."""
    while start < end:
        yield start
        start += HOUR
