"""Whether the band holds: each past day is forecast from the days before it alone, and compared with what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.costs.forecast.reckoning.inputs import PastDay
from fleet.costs.forecast.reckoning.usual import (
    LEAST_DAYS,
    SATURDAY,
    Origin,
    along,
    learn,
    origins_of,
)

AHEAD = (1, 3, 7, 14)
HOUR = 12


@dataclass(frozen=True, slots=True)
class Held:
    """`held` of `of` past forecasts ended within their band."""

    held: int = 0
    of: int = 0

    @property
    def share(self) -> float | None:
        return self.held / self.of if self.of else None


def backtest(history: Sequence[PastDay], *, ahead: Sequence[int] = AHEAD, least_days: int = 2 * LEAST_DAYS) -> Held:
    """Only of days before which there are `least_days`; a band that is the stated default is no forecast of ours."""
    results = [
        within
        for origin in origins_of(history, hour=HOUR)
        if len(before := [one for one in history if one.day < origin.day]) >= least_days
        for within in outcomes(before, origin, ahead)
    ]
    return Held(sum(results), len(results))


def outcomes(before: Sequence[PastDay], origin: Origin, ahead: Sequence[int]) -> list[bool]:
    usual = learn(before, hour=HOUR, is_weekend=origin.day.weekday() >= SATURDAY)
    if not usual.measured:
        return []
    return [
        low <= origin.amounts[days] <= high
        for days in ahead
        if days < len(origin.amounts)
        for expected in [origin.rate_per_day * days + along(usual.new, days) - along(usual.going, days)]
        for low, high in [(expected * (1 + along(usual.low, days)), expected * (1 + along(usual.high, days)))]
    ]
