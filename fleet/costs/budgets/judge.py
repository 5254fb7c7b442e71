"""Which thresholds of a budget are reached now, by what was spent and by what will have been. Pure.

A threshold fires once a period. It falls back when the figure is more than a twentieth below it, after a refund for example. What was
spent and reaches it again stands again; a forecast that sways does not come back within its period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from fleet.costs.budgets.periods import Period

# Below this part of a threshold it has fallen back.
FALLS_BACK = Decimal("0.95")
WHOLE = 100


class Measure(StrEnum):
    """What a threshold is held against, named as the rows name it."""

    ACTUAL = "actual"
    FORECAST = "forecast"


@dataclass(frozen=True, slots=True, order=True)
class Threshold:
    basis: Measure
    percent: int


# Spent as a whole: from then on a hard budget blocks.
SPENT = Threshold(Measure.ACTUAL, WHOLE)


@dataclass(frozen=True, slots=True)
class Limits:
    """A budget as it is judged."""

    amount: Decimal
    period: Period
    thresholds: tuple[Threshold, ...]
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """`is_floor`: something was charged whose price or rate nobody knows, so that it is at least this much."""

    amount: Decimal
    is_floor: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fired`: for the first time. `again`: fell back before. `standing`: all that is reached now. `blocks`: nothing may be launched."""

    fired: tuple[Threshold, ...] = ()
    again: tuple[Threshold, ...] = ()
    fell_back: tuple[Threshold, ...] = ()
    standing: frozenset[Threshold] = frozenset()
    blocks: bool = False


def judge_budget(
    budget: Limits, spent: Spent, forecast: Decimal | None, crossings: Mapping[Threshold, bool], now: datetime
) -> Verdict:
    """`forecast`: at the end of the period; None = there is too little to tell it from, and nothing of it changes.

    `crossings`: of this period and this state of the budget, whether each still stands. Outside the period nothing stands.
    """
    if not budget.period.holds(now):
        return Verdict()
    fired, again, fell_back, standing = [], [], [], set()
    for threshold in sorted(budget.thresholds):
        stood = crossings.get(threshold)
        stands = _stands(threshold, stood, budget, spent, forecast)
        if stands:
            standing.add(threshold)
        if stands and stood is None:
            fired.append(threshold)
        elif stands and not stood:
            again.append(threshold)
        elif stood and not stands:
            fell_back.append(threshold)
    return Verdict(tuple(fired), tuple(again), tuple(fell_back), frozenset(standing), budget.hard and SPENT in standing)


def _stands(threshold: Threshold, stood: bool | None, budget: Limits, spent: Spent, forecast: Decimal | None) -> bool:
    limit = budget.amount * threshold.percent / WHOLE
    is_forecast = threshold.basis is Measure.FORECAST
    value = forecast if is_forecast else spent.amount
    if value is None or (is_forecast and stood is False):
        return bool(stood)
    if stood:
        return value >= limit * FALLS_BACK or spent.is_floor
    return value >= limit


def straight(spent: Decimal, daily: list[Decimal], days_left: float) -> Decimal | None:
    """What will have been spent if the days to come cost as the `daily` ones did on average. None without any."""
    if not daily:
        return None
    return spent + sum(daily, Decimal(0)) / len(daily) * Decimal(str(days_left))
