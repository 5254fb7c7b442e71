"""The span that a budget is for, in days of its team's time zone. Pure.

Days are counted on the calendar: the day on which clocks change is one day, of 23 or 25 hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """The days [first, until) of a zone."""

    first: date
    until: date
    zone: ZoneInfo

    @classmethod
    def month(cls, now: datetime, zone: ZoneInfo) -> Period:
        first = now.astimezone(zone).date().replace(day=1)
        return cls(first, (first + timedelta(days=32)).replace(day=1), zone)

    @property
    def begins_at(self) -> datetime:
        return datetime.combine(self.first, time(), self.zone).astimezone(UTC)

    @property
    def ends_at(self) -> datetime:
        return datetime.combine(self.until, time(), self.zone).astimezone(UTC)

    def holds(self, now: datetime) -> bool:
        return self.begins_at <= now < self.ends_at

    def today(self, now: datetime) -> date:
        return now.astimezone(self.zone).date()

    def share_gone(self, now: datetime) -> float:
        """Between 0 and 1, by the hours that the period really has."""
        whole = (self.ends_at - self.begins_at).total_seconds()
        return min(1.0, max(0.0, (now - self.begins_at).total_seconds() / whole))

    def days_left(self, now: datetime) -> float:
        """From now until its end, in days of 24 hours."""
        return max(0.0, (self.ends_at - max(now, self.begins_at)) / ONE_DAY)
