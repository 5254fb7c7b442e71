"""A calendar month of a team: the span that pages, budgets and reports of money are about, in the team's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from fleet.teams.models import Team

# No machine was rented before; and what comes before the first year, dates cannot say.
EARLIEST = date(2010, 1, 1)


@dataclass(frozen=True, slots=True)
class Month:
    """`first`: its first day. `today`: the day that it is now in the team's zone."""

    first: date
    today: date
    zone: ZoneInfo

    @classmethod
    def of(cls, team: Team, *, now: datetime, name: str = "") -> Month:
        """The month written YYYY-MM; the present one if it is empty, wrong, before EARLIEST or to come."""
        zone = ZoneInfo(team.time_zone)
        today = now.astimezone(zone).date()
        return cls(min(_parsed(name) or today, today).replace(day=1), today, zone)

    @property
    def next_first(self) -> date:
        return (self.first + timedelta(days=32)).replace(day=1)

    @property
    def before(self) -> Month:
        return Month((self.first - timedelta(days=1)).replace(day=1), self.today, self.zone)

    @property
    def is_current(self) -> bool:
        return self.first <= self.today < self.next_first

    @property
    def end(self) -> date:
        """The first day that is not counted: of a month that is not over, tomorrow."""
        return min(self.next_first, self.today + timedelta(days=1))

    @property
    def days(self) -> int:
        return (self.next_first - self.first).days

    @property
    def begins_at(self) -> datetime:
        return datetime.combine(self.first, time(), self.zone)

    @property
    def ends_at(self) -> datetime:
        return datetime.combine(self.next_first, time(), self.zone)

    def __str__(self) -> str:
        return f"{self.first:%Y-%m}"


def _parsed(name: str) -> date | None:
    try:
        first = date.fromisoformat(f"{name}-01")
    except ValueError:
        return None
    return first if first >= EARLIEST else None
