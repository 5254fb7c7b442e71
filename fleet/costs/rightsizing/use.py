"""How much the GPUs that a team rents really work, and what an hour of one costs: from the ledger's days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from fleet.costs.ledger.intervals import Meter
from fleet.costs.spend.spend import By, Sum, Where, spend
from fleet.states import GpuState
from fleet.teams.models import Team

WINDOW_DAYS = 30
WEEK_DAYS = 7
HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Use:
    """Of one GPU model over whole days. `worked` and `rented` in GPU-hours; `weeks`: the share that worked, the newest week last."""

    gpu_model: str
    worked: Decimal
    rented: Decimal
    price_per_gpu_hour: Decimal
    weeks: tuple[Decimal, ...]
    days: int

    @property
    def utilization(self) -> Decimal:
        return self.worked / self.rented

    @property
    def gpus(self) -> int:
        """On average, at least one."""
        return max(1, round(self.rented / (24 * self.days)))


def use_of(team: Team, *, today: date, currency: str) -> list[Use]:
    """The 30 whole days before today, the model with most rented hours first. Two queries.

    A model of which some hours have no price, or none in this currency, is left out: its price would be too low.
    """
    start = today - timedelta(days=WINDOW_DAYS)
    compute = Where(meters=(Meter.COMPUTE,))
    found = spend(team=team, start=start, end=today, by=(By.GPU_MODEL, By.DAY), where=compute, currency=currency)
    days: dict[str, dict[date, Sum]] = defaultdict(dict)
    for (model, day), one in found.rows.items():
        if isinstance(day, date) and model:
            days[str(model)][day] = one
    used = (_use(model, by_day, today) for model, by_day in days.items())
    return sorted((one for one in used if one is not None), key=lambda one: -one.rented)


def _use(model: str, by_day: dict[date, Sum], today: date) -> Use | None:
    sums = list(by_day.values())
    rented = rented_hours(sums)
    cost = sum((one.total for one in sums), Decimal(0))
    if not rented or cost <= 0 or any(one.unconverted or one.unpriced_seconds for one in sums):
        return None
    weeks = []
    for back in range(WINDOW_DAYS // WEEK_DAYS, 0, -1):
        end = today - timedelta(days=WEEK_DAYS * (back - 1))
        week = [one for day, one in by_day.items() if end - timedelta(days=WEEK_DAYS) <= day < end]
        if hours := rented_hours(week):
            weeks.append(worked_hours(week) / hours)
    return Use(model, worked_hours(sums), rented, cost / rented, tuple(weeks), WINDOW_DAYS)


def rented_hours(sums: Sequence[Sum]) -> Decimal:
    """Everything that was paid for as compute; hours that nobody saw count as hours without work."""
    return _hours(sum(sum(one.gpu_seconds.values()) for one in sums))


def worked_hours(sums: Sequence[Sum]) -> Decimal:
    return _hours(sum(one.gpu_seconds.get(GpuState.WORKING, 0.0) for one in sums))


def _hours(seconds: float) -> Decimal:
    return Decimal(str(round(seconds, 3))) / HOUR_SECONDS
