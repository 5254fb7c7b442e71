"""What the report of a month says, as figures: every total is `spend`'s, so that it agrees with the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from fleet.costs.bills.shown import confirmed_by_bills
from fleet.costs.budgets.models import BudgetPeriod
from fleet.costs.budgets.shown import BudgetLine, budgets_of
from fleet.costs.forecast.models import ForecastDay
from fleet.costs.forecast.scopes import TEAM
from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Spend, Sum, spend
from fleet.inventory.models import Instance, ProviderAccount
from fleet.states import GpuState
from fleet.teams.models import Project, Team

NOTHING = Decimal(0)
MOST_CHANGE = 999
MOST_LINES = 8
MOST_WASTERS = 5
# A forecast that was made in the first days knew little of the month.
FORECAST_FROM_DAY = 10
# The marks of the states where no drawing is seen.
TWINS = {GpuState.HELD_IDLE: "⬓", GpuState.FREE: "□", GpuState.STALLED: "⊠"}


@dataclass(frozen=True, slots=True)
class Line:
    """One project or account. `name` None: nobody's, or `others` put together."""

    name: str | None
    amount: Decimal
    bought_nothing: Decimal
    share_percent: int
    others: int = 0


@dataclass(frozen=True, slots=True)
class Waster:
    instance_id: int
    name: str
    amount: Decimal
    state: GpuState

    @property
    def mark(self) -> str:
        return TWINS[self.state]


@dataclass(frozen=True, slots=True)
class Bar:
    """One day of the chart; `percent` of the dearest day."""

    day: date
    amount: Decimal
    useful_percent: int
    nothing_percent: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What was forecast on a day, and by how much it was off in the end."""

    made_on: date
    said: Decimal
    low: Decimal | None
    high: Decimal | None
    off_percent: int
    is_within: bool | None


@dataclass(frozen=True, slots=True)
class Report:
    """Amounts are in `currency`; `unconverted` has no rate to it and is in none of them."""

    month: Month
    currency: str
    total: Decimal
    before: Decimal | None
    change_percent: int | None
    bought_nothing: Decimal
    nothing_percent: int
    by_state: tuple[tuple[GpuState, Decimal], ...]
    projects: tuple[Line, ...]
    accounts: tuple[Line, ...]
    wasters: tuple[Waster, ...]
    bars: tuple[Bar, ...]
    accuracy: Accuracy | None
    budgets: tuple[BudgetLine, ...]
    # How much of the month bills bear out, 0 to 100; None where no bill has been read.
    confirmed_percent: int | None
    unconverted: Mapping[str, Decimal]
    unpriced_hours: int

    @property
    def fall_percent(self) -> int:
        return -(self.change_percent or 0)


def change_of(total: Decimal, before: Decimal | None) -> int | None:
    """In percent; None against nothing, or against so little that a percentage says nothing."""
    change = percent(total - before, before) if before else None
    return None if change is None or change > MOST_CHANGE else change


def report_of(*, team: Team, month: Month) -> Report | None:
    """None where there was no money in this month nor in the one before. A constant number of queries."""
    days = spend(team=team, start=month.first, end=month.next_first, by=(By.DAY,))
    earlier = spend(team=team, start=month.before.first, end=month.first).all
    if not says_something(days.all) and not says_something(earlier):
        return None
    before = earlier.total if earlier.amounts else None
    return Report(
        month=month,
        currency=days.currency,
        total=days.all.total,
        before=before,
        change_percent=change_of(days.all.total, before),
        bought_nothing=days.all.bought_nothing,
        nothing_percent=percent(days.all.bought_nothing, days.all.total) or 0,
        by_state=tuple((state, amount) for state, amount in days.all.states.items() if amount),
        projects=lines_of(split(team, month, By.PROJECT), project_names(team)),
        accounts=lines_of(split(team, month, By.ACCOUNT), account_names(team)),
        wasters=wasters_of(split(team, month, By.MACHINE)),
        bars=bars_of(days, month),
        accuracy=accuracy_of(team, month, days.all.total, days.currency),
        budgets=budgets_in(team, month),
        confirmed_percent=confirmed_percent(team, month),
        unconverted={currency: amount for currency, amount in days.all.unconverted.items() if amount},
        unpriced_hours=round(days.all.unpriced_seconds / 3600),
    )


def budgets_in(team: Team, month: Month) -> tuple[BudgetLine, ...]:
    """Those of months, as they stood when this one ended."""
    at = month.ends_at - timedelta(seconds=1)
    return tuple(line for line in budgets_of(team, at) if line.budget.period == BudgetPeriod.MONTH)


def confirmed_percent(team: Team, month: Month) -> int | None:
    found = confirmed_by_bills(team=team, start=month.first, end=month.next_first)
    return round(found.share * 100) if found.accounts and found.share is not None else None


def says_something(found: Sum) -> bool:
    return any(found.amounts.values()) or found.unpriced_seconds > 0


def split(team: Team, month: Month, by: By) -> Spend:
    return spend(team=team, start=month.first, end=month.next_first, by=(by,))


def percent(part: Decimal, whole: Decimal) -> int | None:
    return round(100 * part / whole) if whole else None


def project_names(team: Team) -> dict[int, str]:
    return dict(Project.objects.filter(team=team).values_list("pk", "name"))


def account_names(team: Team) -> dict[int, str]:
    return dict(ProviderAccount.objects.filter(team=team).values_list("pk", "name"))


def lines_of(found: Spend, names: Mapping[int, str]) -> tuple[Line, ...]:
    """The largest first; the rest together, so that they add up to the total."""
    rows = [(names.get(key) if isinstance(key, int) else None, one) for (key,), one in found.rows.items()]
    lines = [line(name, [one], found) for name, one in rows[:MOST_LINES]]
    rest = [one for _name, one in rows[MOST_LINES:]]
    return (*lines, line(None, rest, found, others=len(rest))) if rest else tuple(lines)


def line(name: str | None, sums: Iterable[Sum], of: Spend, *, others: int = 0) -> Line:
    found = list(sums)
    amount = sum((one.total for one in found), NOTHING)
    wasted = sum((one.bought_nothing for one in found), NOTHING)
    return Line(name, amount, wasted, percent(amount, of.all.total) or 0, others)


def wasters_of(found: Spend) -> tuple[Waster, ...]:
    rows = [(key, one) for (key,), one in found.rows.items() if isinstance(key, int) and one.bought_nothing > 0]
    most = sorted(rows, key=lambda row: -row[1].bought_nothing)[:MOST_WASTERS]
    names = dict(Instance.objects.filter(pk__in=[key for key, _one in most]).values_list("pk", "name"))
    return tuple(Waster(key, names[key], one.bought_nothing, main_cause(one)) for key, one in most)


def main_cause(found: Sum) -> GpuState:
    return max(TWINS, key=lambda state: found.states.get(state, NOTHING))


def bars_of(found: Spend, month: Month) -> tuple[Bar, ...]:
    days = [date.fromordinal(month.first.toordinal() + number) for number in range(month.days)]
    sums = {day: one for (day,), one in found.rows.items()}
    dearest = max((one.total for one in sums.values()), default=NOTHING)
    return tuple(bar(day, sums.get(day), dearest) for day in days)


def bar(day: date, found: Sum | None, dearest: Decimal) -> Bar:
    if found is None or dearest <= 0:
        return Bar(day, NOTHING, 0, 0)
    # A day of credits has no height.
    whole = max(percent(found.total, dearest) or 0, 0)
    nothing = min(max(percent(found.bought_nothing, dearest) or 0, 0), whole)
    return Bar(day, found.total, whole - nothing, nothing)


def accuracy_of(team: Team, month: Month, total: Decimal, currency: str) -> Accuracy | None:
    """Of the first forecast from the tenth on; None where none was kept, or where it was in another currency."""
    since = month.first.replace(day=FORECAST_FROM_DAY)
    kept = ForecastDay.objects.filter(team=team, scope=TEAM, month=month.first, day__gte=since, currency=currency)
    found = kept.filter(will_end__isnull=False).order_by("day").first()
    if found is None or found.will_end is None or not total:
        return None
    low, high = found.low, found.high
    within = None if low is None or high is None else low <= total <= high
    return Accuracy(found.day, found.will_end, low, high, percent(found.will_end - total, total) or 0, within)
