"""A fleet that lives by the week: launches on working days, few at weekends, lives of days, a part of it stopped at night and weekends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from fleet.costs.forecast.reckoning.inputs import RATE_HOURS, PastDay

FIRST = date(2026, 3, 2)
PRICES = ("0.79", "1.99", "2.49", "3.49", "13.96", "23.92")
OFFICE_HOURS = range(8, 20)


@dataclass(frozen=True)
class Life:
    price: Decimal
    first: date
    last: date
    office_hours: bool

    def runs(self, day: date, hour: int) -> bool:
        if not self.first <= day <= self.last:
            return False
        return not self.office_hours or (day.weekday() < 5 and hour in OFFICE_HOURS)

    def amount(self, day: date) -> Decimal:
        return self.price * sum(self.runs(day, hour) for hour in range(24))


def lives(random: Random, days: int) -> list[Life]:
    """A core that stays, and machines that come for a while."""
    core = [Life(Decimal("13.96"), FIRST, FIRST + timedelta(days=days), False) for _number in range(6)]
    found = list(core)
    for number in range(-40, days):
        day = FIRST + timedelta(days=number)
        for _launch in range(random.choice((1, 2, 3, 4)) if day.weekday() < 5 else random.choice((0, 0, 1))):
            last = day + timedelta(days=int(random.expovariate(1 / 9)))
            found.append(Life(Decimal(random.choice(PRICES)), day, last, random.random() < 0.3))
    return found


def synthetic_history(*, seed: int, days: int) -> list[PastDay]:
    machines = lives(Random(seed), days)
    return [past_day(FIRST + timedelta(days=number), machines) for number in range(days)]


def past_day(day: date, machines: list[Life]) -> PastDay:
    by_age: dict[int, Decimal] = {}
    for one in machines:
        if amount := one.amount(day):
            age = (day - one.first).days
            by_age[age] = by_age.get(age, Decimal(0)) + amount
    rates = tuple(sum((one.price for one in machines if one.runs(day, hour)), Decimal(0)) for hour in RATE_HOURS)
    return PastDay(day, sum(by_age.values(), Decimal(0)), rates, by_age)
