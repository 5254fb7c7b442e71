"""What a budget is held against: what its period cost so far, and what it will have cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from fleet.costs.book.models import LedgerChange
from fleet.costs.budgets.judge import WHOLE, Limits, Measure, Spent, Threshold, straight
from fleet.costs.budgets.models import Budget, BudgetPeriod
from fleet.costs.budgets.periods import ONE_DAY, Period
from fleet.costs.forecast.forecast import month_forecast
from fleet.costs.forecast.rates import factors_into
from fleet.costs.spend.spend import By, Sum, Where, spend

# A forecast is judged once money was spent on so many of the last whole days.
ENOUGH_DAYS = 5
LOOKED_BACK = timedelta(days=28)
# The days whose average goes on in a period that is no month.
AVERAGED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Used:
    """What was spent, and what could not be counted: amounts without a rate, time at a price nobody told."""

    amount: Decimal = Decimal(0)
    unconverted: dict[str, Decimal] = field(default_factory=dict)
    unpriced_seconds: float = 0.0

    @classmethod
    def of(cls, sums: Iterable[Sum]) -> Used:
        amount, unconverted, unpriced = Decimal(0), dict[str, Decimal](), 0.0
        for one in sums:
            amount += one.total
            unpriced += one.unpriced_seconds
            for currency, part in one.unconverted.items():
                unconverted[currency] = unconverted.get(currency, Decimal(0)) + part
        return cls(amount, unconverted, unpriced)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where it is heading. will_end None: nothing to tell it from; `is_enough`: whether it may be acted on. passes: percent of the amount -> day."""

    will_end: Decimal | None = None
    is_enough: bool = False
    passes: dict[int, date] = field(default_factory=dict)

    @property
    def forecast(self) -> Decimal | None:
        return self.will_end if self.is_enough else None

    def kept(self, period: Period) -> dict[str, Any]:
        """As a budget's row keeps it, JSON-ready."""
        return {
            "first": period.first.isoformat(),
            "will_end": None if self.will_end is None else str(self.will_end),
            "is_enough": self.is_enough,
            "passes": {str(percent): day.isoformat() for percent, day in self.passes.items()},
        }

    @classmethod
    def of_row(cls, budget: Budget, period: Period) -> Outlook:
        """As it was last judged; nothing where that was in another period."""
        kept = budget.outlook
        if kept.get("first") != period.first.isoformat():
            return cls()
        will_end = None if kept["will_end"] is None else Decimal(kept["will_end"])
        passes = {int(percent): date.fromisoformat(day) for percent, day in kept["passes"].items()}
        return cls(will_end, bool(kept["is_enough"]), passes)


def period_of(budget: Budget, now: datetime) -> Period:
    zone = ZoneInfo(budget.team.time_zone)
    if budget.period == BudgetPeriod.MONTH or budget.starts_on is None or budget.ends_on is None:
        return Period.month(now, zone)
    return Period(budget.starts_on, budget.ends_on, zone)


def where_of(budget: Budget) -> Where:
    return Where(
        projects=(budget.project_id,) if budget.project_id else (),
        owners=(budget.owner_id,) if budget.owner_id else (),
        accounts=(budget.account_id,) if budget.account_id else (),
    )


def limits_of(budget: Budget, period: Period) -> Limits:
    thresholds = [Threshold(Measure.ACTUAL, percent) for percent in budget.actual_thresholds]
    thresholds += [Threshold(Measure.FORECAST, percent) for percent in budget.forecast_thresholds]
    return Limits(budget.amount, period, tuple(thresholds), budget.hard)


def used_of(budgets: Sequence[Budget], now: datetime) -> dict[int, Used]:
    """By budget. All of them are of one team; one reading for each span and currency that they are in, which is mostly one."""
    spans: dict[tuple[date, date, str], list[Budget]] = {}
    for budget in budgets:
        period = period_of(budget, now)
        spans.setdefault((period.first, period.until, budget.currency), []).append(budget)
    found: dict[int, Used] = {}
    for (first, until, currency), those in spans.items():
        by = (By.PROJECT, By.OWNER, By.ACCOUNT)
        rows = spend(team=those[0].team, start=first, end=until, by=by, currency=currency).rows
        for budget in those:
            found[budget.pk] = Used.of(one for whose, one in rows.items() if _is_of(budget, whose))
    return found


def spent_of(budget: Budget, used: Used, now: datetime) -> Spent:
    """While days that are over are summed again, as after a change of the time zone, it may be less than it was."""
    period = period_of(budget, now)
    today = datetime.combine(period.today(now), time(), period.zone)
    is_summed = not LedgerChange.objects.filter(account__team=budget.team, from_at__lt=today).exists()
    return Spent(used.amount, is_floor=bool(used.unconverted or used.unpriced_seconds or not is_summed))


def _is_of(budget: Budget, whose: tuple[object, ...]) -> bool:
    wanted = (budget.project_id, budget.owner_id, budget.account_id)
    return all(pk is None or pk == its for pk, its in zip(wanted, whose, strict=True))


def outlook_of(budget: Budget, spent: Decimal, now: datetime) -> Outlook:
    """A month's as everywhere else (`month_forecast`); another period goes on as its last seven whole days did."""
    period = period_of(budget, now)
    if not period.holds(now):
        return Outlook()
    daily = daily_of(budget, period.today(now))
    is_enough = len(daily) >= ENOUGH_DAYS
    if budget.period == BudgetPeriod.MONTH:
        return _of_month(budget, is_enough, now)
    will_end = straight(spent, averaged(daily, period.today(now)), period.days_left(now))
    return Outlook(will_end, is_enough, _passes(budget, spent, will_end, period, now))


def _of_month(budget: Budget, is_enough: bool, now: datetime) -> Outlook:
    team = budget.team
    found = month_forecast(team=team, now=now, where=where_of(budget))
    factor = factors_into(team, budget.currency, now.astimezone(found.zone).date()).get(team.currency)
    if factor is None:
        return Outlook()
    days = {percent: found.passed_on(budget.amount * percent / WHOLE / factor) for percent in budget.actual_thresholds}
    return Outlook(found.will_end * factor, is_enough, {percent: day for percent, day in days.items() if day})


def daily_of(budget: Budget, today: date) -> dict[date, Decimal]:
    """What each whole day cost of the last four weeks on which it cost anything."""
    found = spend(
        team=budget.team,
        start=today - LOOKED_BACK,
        end=today,
        by=(By.DAY,),
        where=where_of(budget),
        currency=budget.currency,
    )
    return {day: one.total for (day,), one in found.rows.items() if isinstance(day, date)}


def averaged(daily: dict[date, Decimal], today: date) -> list[Decimal]:
    """The last seven whole days, from the first on that cost anything."""
    if not daily:
        return []
    first = max(min(daily), today - AVERAGED)
    return [daily.get(first + number * ONE_DAY, Decimal(0)) for number in range((today - first).days)]


def _passes(budget: Budget, spent: Decimal, will_end: Decimal | None, period: Period, now: datetime) -> dict[int, date]:
    """By a straight line from now to the end."""
    found: dict[int, date] = {}
    for percent in budget.actual_thresholds:
        missing = budget.amount * percent / WHOLE - spent
        if will_end is None or missing > will_end - spent:
            continue
        share = 0.0 if missing <= 0 else float(missing / (will_end - spent))
        found[percent] = (now + (period.ends_at - now) * share).astimezone(period.zone).date()
    return found
