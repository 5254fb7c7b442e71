"""What usually happens beyond what is known, and how far forecasts were off: both from the team's own past days.

From each past day (an origin) it is asked what the rate of that day would have said of the days after it, and what came. What came
on machines that were not there yet is "new"; what the machines that were there cost less than their rate is "going".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from statistics import median, quantiles

from fleet.costs.forecast.reckoning.inputs import RATE_HOURS, PastDay

MOST_DAYS = 31
# With fewer days nothing is said of what is usual.
LEAST_DAYS = 14
# So many past forecasts are the least from which a median or a band is taken.
LEAST_ORIGINS = 8
# The band where the past says too little: of what is still to come, this much less or more.
DEFAULT_LOW, DEFAULT_HIGH = -0.3, 0.4
SATURDAY = 5
Curve = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Usual:
    """By days ahead, index 0 = none. `new`, `going`: money up to then. `low`, `high`: relative errors of what was to come, 8 in 10.

    measured: False where the band is the stated default. `origins`: how many past forecasts it is from.
    """

    new: Curve = ()
    going: Curve = ()
    low: Curve = (DEFAULT_LOW, DEFAULT_LOW)
    high: Curve = (DEFAULT_HIGH, DEFAULT_HIGH)
    days: int = 0
    origins: int = 0
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """A past day and what followed it, summed up by days ahead; the sums end where a day is missing."""

    day: date
    rate_per_day: float
    amounts: Curve
    new: Curve

    @property
    def is_weekend(self) -> bool:
        return self.day.weekday() >= SATURDAY

    def going(self, ahead: int) -> float:
        return self.rate_per_day * ahead - (self.amounts[ahead] - self.new[ahead])


def learn(history: Sequence[PastDay], *, hour: int, is_weekend: bool) -> Usual:
    """From forecasts made at about that hour of such a day (working day or weekend), where there are enough of them."""
    if len(history) < LEAST_DAYS:
        return Usual(days=len(history))
    origins = list(origins_of(history, hour=hour))
    alike = [one for one in origins if one.is_weekend is is_weekend]
    return learnt(alike if len(alike) >= 2 * LEAST_ORIGINS else origins, days=len(history))


def learnt(origins: Sequence[Origin], *, days: int) -> Usual:
    by_ahead = [[one for one in origins if len(one.amounts) > ahead] for ahead in range(1, MOST_DAYS + 1)]
    enough = [group for group in by_ahead if len(group) >= LEAST_ORIGINS]
    if not enough:
        return Usual(days=days)
    new = extended(accumulate(_medians(enough, lambda one, ahead: one.new[ahead]), max))
    going = extended(_medians(enough, Origin.going))
    bands = [band(group, ahead, new[ahead] - going[ahead]) for ahead, group in enumerate(enough, 1)]
    low, high = (widened([one[side] for one in bands]) for side in (0, 1))
    return Usual(new, going, low, high, days=days, origins=len(enough[0]), measured=True)


def origins_of(history: Sequence[PastDay], *, hour: int) -> Iterator[Origin]:
    """One for each day with a known rate at the hour of RATE_HOURS before `hour`."""
    slot = max(number for number, begins in enumerate(RATE_HOURS) if begins <= hour)
    days = {one.day: one for one in history}
    ages = {one.day: up_to_age(one.by_age) for one in history}
    for one in history:
        rate = one.rates[slot] if slot < len(one.rates) else None
        if rate is not None:
            yield Origin(one.day, float(rate) * 24, *what_followed(one.day, days, ages))


def what_followed(origin: date, days: Mapping[date, PastDay], ages: Mapping[date, Curve]) -> tuple[Curve, Curve]:
    amounts, new = [0.0], [0.0]
    for ahead in range(1, MOST_DAYS + 1):
        day = origin + timedelta(days=ahead)
        if day not in days:
            break
        amounts.append(amounts[-1] + float(days[day].amount))
        # Of machines first seen after the origin: they are younger than the distance to it.
        new.append(new[-1] + ages[day][ahead - 1])
    return tuple(amounts), tuple(new)


def up_to_age(by_age: Mapping[int, Decimal]) -> Curve:
    """What went to machines of at most 0, 1, 2 … days."""
    return tuple(accumulate(float(by_age.get(age, 0)) for age in range(MOST_DAYS)))


def _medians(groups: Sequence[Sequence[Origin]], figure: Callable[[Origin, int], float]) -> Iterator[float]:
    for ahead, group in enumerate(groups, 1):
        yield median(figure(one, ahead) for one in group)


def band(origins: Sequence[Origin], ahead: int, usual: float) -> tuple[float, float]:
    """The tenth and the ninetieth of the relative errors, around 0.

    Spans of several days overlap, so that there are fewer errors than it seems: the band is wider by what that takes off them.
    """
    errors = [error for one in origins if (error := relative_error(one, ahead, usual)) is not None]
    if len(errors) < LEAST_ORIGINS:
        return DEFAULT_LOW, DEFAULT_HIGH
    tenths = quantiles(errors, n=10, method="exclusive")
    wider = (1 + ahead / len(errors)) ** 0.5
    return min(tenths[0] * wider, 0.0), max(tenths[-1] * wider, 0.0)


def relative_error(origin: Origin, ahead: int, usual: float) -> float | None:
    expected = origin.rate_per_day * ahead + usual
    return (origin.amounts[ahead] - expected) / expected if expected > 0 else None


def extended(curve: Iterable[float]) -> Curve:
    """From 0, and beyond its end as it went on average."""
    known = [0.0, *curve]
    last = len(known) - 1
    return (*known, *(known[last] * ahead / last for ahead in range(last + 1, MOST_DAYS + 1)))


def widened(bounds: Sequence[float]) -> Curve:
    """Relative errors by days ahead, beyond the last one growing as errors that add up by chance."""
    last = len(bounds)
    beyond = (bounds[-1] * (ahead / last) ** 0.5 for ahead in range(last + 1, MOST_DAYS + 1))
    return (bounds[0], *bounds, *beyond)


def along(curve: Curve, ahead: float) -> float:
    """Between the days, straight; after the last, as the last."""
    if not curve:
        return 0.0
    whole = min(int(ahead), len(curve) - 1)
    following = min(whole + 1, len(curve) - 1)
    return curve[whole] + (curve[following] - curve[whole]) * (ahead - int(ahead))
