"""The kept days of a scope, and how the forecasts that were made then turned out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from fleet.costs.forecast.models import ForecastDay
from fleet.costs.forecast.reckoning.inputs import PastDay
from fleet.teams.models import Team

HISTORY_DAYS = 100
# Of fewer past forecasts nothing is said.
LEAST_MADE = 10


@dataclass(frozen=True, slots=True)
class Past:
    """`days`: ascending. `held` of `of` forecasts ended within their band; `tested`: they were reckoned afterwards."""

    days: tuple[PastDay, ...] = ()
    held: int = 0
    of: int = 0
    tested: bool = False


def past_of(*, team: Team, scope: str, currency: str, today: date) -> Past:
    """One query; none for filters that no past is kept of."""
    if not scope:
        return Past()
    since = today - timedelta(days=HISTORY_DAYS)
    rows = list(
        ForecastDay.objects.filter(team=team, scope=scope, currency=currency, day__gte=since, day__lt=today).order_by(
            "day"
        )
    )
    days = tuple(past_day(row) for row in rows)
    held, of = outcome(rows, today.replace(day=1))
    if of >= LEAST_MADE:
        return Past(days, held, of)
    tested = next((row for row in reversed(rows) if row.tested), None)
    return Past(days, tested.tested_held, tested.tested, tested=True) if tested else Past(days)


def past_day(row: ForecastDay) -> PastDay:
    return PastDay(
        row.day,
        row.amount,
        tuple(None if rate is None else Decimal(rate) for rate in row.rates),
        {int(age): Decimal(amount) for age, amount in row.by_age.items()},
    )


def outcome(rows: Sequence[ForecastDay], this_month: date) -> tuple[int, int]:
    """Of the forecasts of months that are over and whose every day is known."""
    actual = months_of(rows)
    judged = [
        row.low <= actual[row.month] <= row.high
        for row in rows
        if row.month and row.month < this_month and row.month in actual and row.low is not None and row.high is not None
    ]
    return sum(judged), len(judged)


def months_of(rows: Iterable[ForecastDay]) -> dict[date, Decimal]:
    found: dict[date, list[Decimal]] = {}
    for row in rows:
        found.setdefault(row.day.replace(day=1), []).append(row.amount)
    return {month: sum(days, Decimal(0)) for month, days in found.items() if len(days) == days_in(month)}


def days_in(month: date) -> int:
    return ((month + timedelta(days=32)).replace(day=1) - month).days
