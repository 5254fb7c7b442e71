"""What hours cost, by whom they belong to: read from the days that totals are read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from fleet.costs.spend.days import ONE_DAY, begin_of, day_of
from fleet.costs.spend.spend import By, Sum, Where, spend
from fleet.teams.models import Team

Whose = tuple[int | None, int | None]
Amounts = dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the hours of a span cost by (project, owner). `is_exact`: whole days only; parts of a day are reckoned by their length."""

    by_whose: Mapping[Whose, Amounts]
    is_exact: bool

    def moved_to(self, target: Whose) -> Amounts:
        """What changes hands if all of it goes to `target`."""
        return added(amounts for whose, amounts in self.by_whose.items() if whose != target)


def days_of(team: Team, start: datetime, until: datetime) -> tuple[date, date]:
    """The days of the team that [start, until) touches, the last not counted."""
    zone = ZoneInfo(team.time_zone)
    last = day_of(until - timedelta(microseconds=1), zone)
    return day_of(start, zone), last + ONE_DAY


def cost_by_whose(*, team: Team, instances: Collection[int], start: datetime, until: datetime) -> list[dict[str, Any]]:
    """JSON-ready: what the days that [start, until) touches cost, by project and owner, in the currencies as charged."""
    first, past_last = days_of(team, start, until)
    found = spend(
        team=team, start=first, end=past_last, by=(By.PROJECT, By.OWNER), where=Where(instances=tuple(instances))
    )
    return [
        {
            "project": project,
            "owner": owner,
            "amounts": {currency: str(amount) for currency, amount in one.amounts.items()},
        }
        for (project, owner), one in found.rows.items()
    ]


def estimate(*, team: Team, instances: Collection[int], start: datetime, until: datetime, now: datetime) -> Estimate:
    """What [start, until) of the machines cost. Of a day that it has a part of, it is charged that part of the time."""
    first, past_last = days_of(team, start, until)
    where = Where(instances=tuple(instances))
    found = spend(team=team, start=first, end=past_last, by=(By.DAY, By.PROJECT, By.OWNER), where=where)
    zone = ZoneInfo(team.time_zone)
    sums: dict[Whose, Amounts] = defaultdict(dict)
    for (day, project, owner), one in found.rows.items():
        assert isinstance(day, date)
        part = part_of_day(day, zone, start, until, now=now)
        whose = (project, owner)
        sums[whose] = added((sums[whose], scaled(one, part)))  # type: ignore[index]  # ids, by the order asked for
    edges = [part_of_day(day, zone, start, until, now=now) for day in (first, past_last - ONE_DAY)]
    return Estimate(dict(sums), all(part == 1 for part in edges))


def part_of_day(day: date, zone: ZoneInfo, start: datetime, until: datetime, *, now: datetime) -> Decimal:
    """How much of the time that the day has gone lies in [start, until): 23 and 25 hours long days count as such."""
    begins, ends = begin_of(day, zone), min(begin_of(day + ONE_DAY, zone), now)
    inside = min(until, ends) - max(start, begins)
    if ends <= begins or inside <= timedelta(0):
        return Decimal(0)
    return Decimal(int(inside.total_seconds())) / Decimal(int((ends - begins).total_seconds()))


def scaled(one: Sum, part: Decimal) -> Amounts:
    return {currency: amount * part for currency, amount in one.amounts.items()}


def added(sums: Iterable[Mapping[str, Decimal]]) -> Amounts:
    total: Amounts = defaultdict(Decimal)
    for amounts in sums:
        for currency, amount in amounts.items():
            total[currency] += amount
    return dict(total)
