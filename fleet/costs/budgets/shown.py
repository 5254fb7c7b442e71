"""Budgets as pages and the API show them: how much is gone, where it is heading, when thresholds come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from fleet.costs.budgets.judge import WHOLE, Measure
from fleet.costs.budgets.measuring import Outlook, Used, period_of, used_of
from fleet.costs.budgets.models import Basis, Budget, Crossing
from fleet.costs.budgets.periods import Period
from fleet.costs.budgets.words import period_words, scope_words
from fleet.formats import amounts_text, duration_text, whole_money_text
from fleet.teams.models import Team

RELATED = ("team", "project", "owner", "account")
# The bar of a page ends at this part of the budget, so that going over is seen.
BAR_PERCENT = 120
MOST_ON_SCALE = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """One threshold. `on`: the day on which it was reached, or will be; None = not in this period as far as anybody can tell."""

    basis: str
    percent: int
    amount: Decimal
    reached_at: datetime | None
    on: date | None

    @property
    def basis_words(self) -> str:
        return str(Basis(self.basis).label)

    @property
    def at(self) -> float:
        """Where on the bar, in percent of its length."""
        return round(self.percent / BAR_PERCENT * 100, 1)


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """`will_end` None: nothing to tell it from. Amounts are exact, in `currency`; `unconverted` and unpriced time are in none of them."""

    budget: Budget
    name: str
    scope: str
    amount: Decimal
    currency: str
    spent: Decimal
    will_end: Decimal | None
    is_enough: bool
    first: date
    until: date
    is_over: bool
    marks: tuple[Mark, ...]
    hard: bool
    closed: bool
    unconverted: dict[str, Decimal]
    unpriced_seconds: float

    @property
    def period_words(self) -> str:
        return period_words(self.first, self.until)

    @property
    def bar_marks(self) -> list[Mark]:
        return [mark for mark in self.marks if mark.basis == Measure.ACTUAL and mark.percent <= BAR_PERCENT]

    @property
    def bar_words(self) -> str:
        said = {"percent": round(self.percent), "end": round(self.end_percent or 0)}
        if self.end_percent is None:
            return gettext("%(percent)d%% spent, where it is heading is not known") % said
        return gettext("%(percent)d%% spent, will reach %(end)d%%") % said

    @property
    def next_words(self) -> str:
        mark = self.next_mark
        if mark is None or mark.on is None:
            return ""
        return gettext("%(percent)d%% about %(on)s") % {"percent": mark.percent, "on": date_format(mark.on, "D j")}

    @property
    def left_words(self) -> str:
        amount = whole_money_text(abs(self.left), self.currency)
        return (gettext("%(amount)s over") if self.left < 0 else gettext("%(amount)s left")) % {"amount": amount}

    @property
    def end_words(self) -> str:
        if self.is_over:
            return gettext("over since %(on)s") % {"on": self.until.isoformat()}
        if self.will_end is None or self.end_percent is None:
            return gettext("forecast not known yet")
        said = {"amount": whole_money_text(self.will_end, self.currency), "percent": round(self.end_percent)}
        return gettext("will end %(amount)s, %(percent)d%%") % said

    @property
    def floor_words(self) -> str:
        """What is in none of its figures."""
        parts = []
        if self.unconverted:
            parts.append(gettext("%(amounts)s without an exchange rate") % {"amounts": amounts_text(self.unconverted)})
        if self.unpriced_seconds:
            parts.append(gettext("%(time)s at a price nobody told") % {"time": duration_text(self.unpriced_seconds)})
        return gettext("Not counted: %(parts)s.") % {"parts": ", ".join(parts)} if parts else ""

    @property
    def percent(self) -> Decimal:
        return self.spent / self.amount * WHOLE

    @property
    def end_percent(self) -> Decimal | None:
        return None if self.will_end is None else self.will_end / self.amount * WHOLE

    @property
    def left(self) -> Decimal:
        """At the end, as it is heading; of what nobody can tell, now. Negative: over."""
        return self.amount - (self.spent if self.will_end is None else self.will_end)

    @property
    def over(self) -> Decimal:
        return -self.left

    @property
    def done_width(self) -> float:
        return float(min(self.percent, Decimal(BAR_PERCENT)) / BAR_PERCENT * 100)

    @property
    def due_width(self) -> float:
        end = self.percent if self.end_percent is None else self.end_percent
        return float(min(max(end, self.percent), Decimal(BAR_PERCENT)) / BAR_PERCENT * 100) - self.done_width

    @property
    def next_mark(self) -> Mark | None:
        """The first threshold of what is spent that is still to come and has a day."""
        ahead = [mark for mark in self.marks if mark.basis == Measure.ACTUAL and mark.reached_at is None and mark.on]
        return min(ahead, key=lambda mark: mark.percent, default=None)

    @property
    def passed_on(self) -> date | None:
        """When all of it is gone."""
        return next((m.on for m in self.marks if m.basis == Measure.ACTUAL and m.percent == WHOLE), None)


def budgets_of(team: Team, now: datetime) -> list[BudgetLine]:
    """Those of the whole team first, then the largest. What is spent is of now, where it is heading as last judged."""
    rows = Budget.objects.filter(team=team, removed_at=None).select_related(*RELATED)
    ordered = sorted(rows, key=lambda row: (any((row.project_id, row.owner_id, row.account_id)), -row.amount, row.pk))
    return lines_of(ordered, now)


def lines_of(budgets: Sequence[Budget], now: datetime) -> list[BudgetLine]:
    """Of one team."""
    crossings, used = _crossings_of(budgets), used_of(budgets, now)
    return [line_of(budget, used[budget.pk], crossings.get(budget.pk, ()), now) for budget in budgets]


def line_of(budget: Budget, used: Used, crossings: Iterable[Crossing], now: datetime) -> BudgetLine:
    period = period_of(budget, now)
    outlook = Outlook.of_row(budget, period)
    reached = {
        (row.basis, row.percent): row
        for row in crossings
        if row.period_from == period.first and row.revision == budget.revision and row.fell_back_at is None
    }
    return BudgetLine(
        budget=budget,
        name=budget.name,
        scope=scope_words(budget),
        amount=budget.amount,
        currency=budget.currency,
        spent=used.amount,
        # What is spent may have outrun it since.
        will_end=None if outlook.will_end is None else max(outlook.will_end, used.amount),
        is_enough=outlook.is_enough,
        first=period.first,
        until=period.until,
        is_over=now >= period.ends_at,
        marks=tuple(_marks(budget, period, outlook, reached)),
        hard=budget.hard,
        closed=budget.hard and (Measure.ACTUAL, WHOLE) in reached and period.holds(now),
        unconverted=used.unconverted,
        unpriced_seconds=used.unpriced_seconds,
    )


def _marks(
    budget: Budget, period: Period, outlook: Outlook, reached: dict[tuple[str, int], Crossing]
) -> Iterable[Mark]:
    pairs = [(Measure.ACTUAL, percent) for percent in budget.actual_thresholds]
    pairs += [(Measure.FORECAST, percent) for percent in budget.forecast_thresholds]
    for basis, percent in pairs:
        row, amount = reached.get((basis, percent)), budget.amount * percent / WHOLE
        ahead = outlook.passes.get(percent) if basis is Measure.ACTUAL else None
        on = row.at.astimezone(period.zone).date() if row else ahead
        yield Mark(basis, percent, amount, row.at if row else None, on)


def _crossings_of(budgets: Sequence[Budget]) -> dict[int, list[Crossing]]:
    found: dict[int, list[Crossing]] = {}
    for row in Crossing.objects.filter(budget__in=[budget.pk for budget in budgets]).order_by("at", "pk"):
        found.setdefault(row.budget_id, []).append(row)
    return found


def judged_at(lines: Iterable[BudgetLine]) -> datetime | None:
    """How old the oldest of their forecasts is."""
    return min((line.budget.judged_at for line in lines if line.budget.judged_at), default=None)


def scale_of(lines: Iterable[BudgetLine]) -> list[tuple[int, float]]:
    """The thresholds over the bars: percent and place, if all budgets together have few."""
    percents = sorted({mark.percent for line in lines for mark in line.marks if mark.percent <= BAR_PERCENT})
    shown = percents if len(percents) <= MOST_ON_SCALE else [percent for percent in percents if percent in (50, WHOLE)]
    return [(percent, round(percent / BAR_PERCENT * 100, 1)) for percent in shown]


def headline(lines: Sequence[BudgetLine]) -> str:
    """The finding, in a sentence without a full stop."""
    current = [line for line in lines if not line.is_over]
    if spent := [line for line in current if line.percent >= WHOLE]:
        text = ngettext("%(n)d budget is spent: %(names)s", "%(n)d budgets are spent: %(names)s", len(spent))
        return text % {"n": len(spent), "names": ", ".join(line.name for line in spent[:3])}
    passed = sorted(
        (line for line in current if line.left < 0 and line.passed_on), key=lambda line: str(line.passed_on)
    )
    if passed:
        said = {
            "n": len(passed),
            "name": passed[0].name,
            "on": date_format(passed[0].passed_on or passed[0].until, "D j M"),
        }
        text = ngettext(
            "%(name)s will be passed around %(on)s",
            "%(n)d budgets will be passed, %(name)s first, around %(on)s",
            len(passed),
        )
        return text % said
    if not current:
        return gettext("No budget is set")
    if all(line.will_end is None for line in current):
        return gettext("No budget is spent; where they are heading is not known yet")
    return gettext("No budget will be passed")


def footer(lines: Sequence[BudgetLine]) -> str:
    """What reaching one does."""
    hard = [line for line in lines if line.hard]
    text = gettext("Each threshold is told once a period, by the channels of the team.")
    if not hard:
        return f"{text} {gettext('Nothing is blocked or stopped.')}"
    blocks = ngettext(
        "Once %(names)s is spent, a launch or start there needs an admin's reason.",
        "Once one of %(names)s is spent, a launch or start there needs an admin's reason.",
        len(hard),
    ) % {"names": ", ".join(line.name for line in hard[:5])}
    stops = gettext("Stops are planned, told to owners and carried out after their notice.")
    return " ".join([text, blocks, stops] if any(line.budget.stops for line in hard) else [text, blocks])
