"""`month_forecast`: where the present month of a team, or a part of its money, is heading. Pages, API, budgets and alerts call it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

from fleet.costs.forecast.courses import Span, machines_ahead, steps_ahead
from fleet.costs.forecast.part_words import worded
from fleet.costs.forecast.past import past_of
from fleet.costs.forecast.rates import charged_between, charged_together, factors_into
from fleet.costs.forecast.reckoning.reckon import Forecast, Known, Part, Point, forecast
from fleet.costs.forecast.scopes import scope_of
from fleet.costs.forecast.shares import shared, shares_of
from fleet.costs.month import Month
from fleet.costs.spend.models import CostProgress
from fleet.costs.spend.spend import By, Where, spend
from fleet.teams.models import Team

__all__ = ["Forecast", "Part", "Point", "month_forecast"]


def month_forecast(*, team: Team, now: datetime, where: Where | None = None) -> Forecast:
    """In the team's currency, with every part in the reader's words. A constant number of queries."""
    month = Month.of(team, now=now)
    counted = spend(team=team, start=month.first, end=month.next_first, by=(By.DAY,), where=where)
    since = counted_until(team, month, now)
    factors = factors_into(team, team.currency, month.today)
    span = Span(since, month.ends_at)
    ahead = steps_ahead(team=team, span=span)
    shares = None
    if where is None or where == Where():
        # Of machines without a step only the sums matter, and there may be thousands of them.
        singly = [machine.pk for machine, _steps in ahead]
        charged = charged_together(team=team, start=since, end=month.ends_at, factors=factors, singly=singly)
    else:
        charged = charged_between(team=team, start=since, end=month.ends_at, factors=factors)
        shares = shares_of(team=team, charged=charged, where=where, today=month.today, now=now)
        charged = shared(charged, shares, where)
    machines, unpriced = machines_ahead(ahead=ahead, charged=charged, factors=factors, shares=shares)
    past = past_of(team=team, scope=scope_of(where), currency=team.currency, today=month.today)
    known = Known(
        currency=team.currency,
        spent={day: one.total for (day,), one in counted.rows.items() if isinstance(day, date)},
        rates=[rate for _account, rate in charged.rates],
        machines=machines,
        history=past.days,
        unpriced=charged.unpriced + unpriced + len(counted.all.unconverted),
    )
    made = forecast(known, now=since, month_start=month.begins_at, month_end=month.ends_at, zone=month.zone)
    parts = tuple(worded(part, made, team) for part in made.parts)
    return replace(made, parts=parts, held=past.held, held_of=past.of, held_is_backtest=past.tested)


def counted_until(team: Team, month: Month, now: datetime) -> datetime:
    """Up to then the days are summed; from then on what is charged is known by its rate."""
    summed = CostProgress.objects.filter(team=team).values_list("summed_until", flat=True).first()
    return max(min(summed or now, now), month.begins_at)
