"""The forecast on the page of costs: the month against its budget as a chart, and how it gets to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.costs.budgets.models import Budget, BudgetPeriod
from fleet.costs.forecast.forecast import Forecast, Part, Point, month_forecast
from fleet.costs.forecast.rates import factors_into
from fleet.costs.month import Month
from fleet.formats import sign_of, whole_money_text
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team

# How often days are summed.
SUM_PERIOD_SECONDS = 300
WARN_PERCENT = 80
# Under it figures are shown with their cents, and add up as they are.
LEAST_WHOLE = 10


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget of the whole team for the month, in the team's currency."""

    name: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. `tone`: "strong", "over" or ""."""

    words: str
    figure: str
    tone: str = ""
    link: str = ""


def month_against_budget(request: TeamRequest, month: Month) -> Context | None:
    """None for a month that is over: there is nothing left to forecast."""
    if not month.is_current:
        return None
    made, limit = shown_forecast(request), team_limit(request.team, month.today)
    return {
        "forecast": made,
        "limit": limit,
        "title": title_of(made, limit, month),
        "held": held_words(made),
        "chart": {"forecast-data": chart_of(made, limit)},
        "rows": made.days,
        "period": SUM_PERIOD_SECONDS,
    }


def how_it_gets_there(request: TeamRequest, month: Month) -> Context | None:
    if not month.is_current:
        return None
    made, limit = shown_forecast(request), team_limit(request.team, month.today)
    return {
        "forecast": made,
        "parts": part_rows(made),
        "limits": limit_rows(made, limit) if limit else [],
        "band": band_words(made),
        "period": SUM_PERIOD_SECONDS,
    }


def shown_forecast(request: TeamRequest) -> Forecast:
    """Made once a request, whatever asks for it."""
    kept: Forecast | None = getattr(request, "month_forecast", None)
    if kept is None:
        kept = month_forecast(team=request.team, now=timezone.now())
        request.month_forecast = kept  # type: ignore[attr-defined]  # kept for the other sections of the page
    return kept


def team_limit(team: Team, today: date) -> Limit | None:
    """The smallest budget of all of the team's money by the month; one in a currency without a rate cannot be drawn."""
    rows = Budget.objects.filter(
        team=team, project=None, owner=None, account=None, period=BudgetPeriod.MONTH, removed_at=None
    ).values_list("name", "amount", "currency")
    factors = factors_into(team, team.currency, today)
    limits = [Limit(name, amount * factors[currency]) for name, amount, currency in rows if currency in factors]
    return min(limits, key=lambda limit: limit.amount, default=None)


def title_of(made: Forecast, limit: Limit | None, month: Month) -> str:
    said = {"month": date_format(month.first, "F"), "end": whole(made, made.will_end)}
    if not made.will_end:
        return _("%(month)s: nothing is charged yet") % said
    if limit is None:
        return _("%(month)s heads for %(end)s") % said
    said["difference"] = whole(made, abs(made.will_end - limit.amount))
    if made.will_end > limit.amount:
        return _("%(month)s heads for %(end)s, %(difference)s over budget") % said
    return _("%(month)s heads for %(end)s, %(difference)s under budget") % said


def held_words(made: Forecast) -> str:
    """What is measured of past forecasts, and how."""
    if not made.held_of:
        return _("no forecast is old enough to say how well they hold")
    said = {"held": made.held, "of": made.held_of}
    if made.held_is_backtest:
        return _("reckoned over past days, the band held %(held)d of %(of)d forecasts") % said
    return _("the band held %(held)d of %(of)d past forecasts") % said


def band_words(made: Forecast) -> str:
    if made.usual.measured:
        return _("The band is how far forecasts of the last %(days)d days were off, 8 in 10.") % {
            "days": made.usual.days
        }
    return _("The band is wide on purpose: there are %(days)d days of history, and 14 are needed to measure it.") % {
        "days": made.usual.days
    }


def whole(made: Forecast, amount: Decimal) -> str:
    return whole_money_text(amount, made.currency)


def part_rows(made: Forecast) -> list[Row]:
    """Whole figures that add up to the whole figure at the end."""
    figures = adding_up([part.amount for part in made.parts], made.will_end)
    rows = [row_of(part, figure, made.currency) for part, figure in zip(made.parts, figures, strict=True)]
    return [*rows, Row(_("Will end"), whole(made, made.will_end), "strong")]


def row_of(part: Part, figure: Decimal, currency: str) -> Row:
    text = whole_money_text(figure, currency)
    return Row(part.words, text.replace("-", "−"), link=part.link)


def adding_up(amounts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Each rounded down or up, so that they come to the rounded total: those that lose most by rounding down are rounded up."""
    if abs(total) < LEAST_WHOLE or any(0 < abs(amount) < LEAST_WHOLE for amount in amounts):
        return list(amounts)
    floors = [amount.quantize(Decimal(1), ROUND_FLOOR) for amount in amounts]
    missing = int(Decimal(whole_number(total)) - sum(floors, Decimal(0)))
    order = sorted(range(len(amounts)), key=lambda number: floors[number] - amounts[number])
    up = set(order[:missing])
    return [floor + (number in up) for number, floor in enumerate(floors)]


def whole_number(amount: Decimal) -> int:
    """As whole_money_text rounds."""
    return int((abs(amount) + Decimal("0.5")) // 1) * (-1 if amount < 0 else 1)


def limit_rows(made: Forecast, limit: Limit) -> list[Row]:
    over = made.will_end - limit.amount
    said = {"budget": whole(made, limit.amount)}
    words = _("Over the budget of %(budget)s") if over > 0 else _("Under the budget of %(budget)s")
    warn = limit.amount * WARN_PERCENT / 100
    return [
        Row(words % said, whole(made, abs(over)), "over" if over > 0 else ""),
        Row(_("80%% of it, %(amount)s") % {"amount": whole(made, warn)}, on_words(made, warn)),
        Row(_("All of it"), on_words(made, limit.amount)),
        Row(_("Ends under it"), chance_words(made.chance_under(limit.amount))),
    ]


def on_words(made: Forecast, amount: Decimal) -> str:
    day = made.passed_on(amount)
    if day is None:
        return _("not this month")
    said = {"day": date_format(day, "D j M")}
    # What has been spent is known to the day; what is forecast is not.
    return _("on %(day)s") % said if made.spent >= amount else _("about %(day)s") % said


def chance_words(chance: float | None) -> str:
    if chance is None:
        return _("not known")
    if chance < 0.05:
        return _("hardly likely")
    if chance > 0.95:
        return _("almost certain")
    tenths = max(1, round(chance * 10))
    return ngettext("%(n)d chance in 10", "%(n)d chances in 10", tenths) % {"n": tenths}


def chart_of(made: Forecast, limit: Limit | None) -> dict[str, Any]:
    """What forecast.js draws: days of the team's zone, as text that Plotly takes as it is."""
    past = [point for point in made.days if point.at <= made.since]
    ahead = [point for point in made.days if point.at >= made.since]
    return {
        "sign": sign_of(made.currency),
        "range": [local(made, made.month_start), local(made, made.month_end)],
        "spent": drawn(made, since_charged(past)),
        "ahead": {
            **drawn(made, ahead),
            "low": [round(float(point.low), 2) for point in ahead],
            "high": [round(float(point.high), 2) for point in ahead],
        },
        "words": {"spent": _("spent"), "forecast": _("forecast")},
        "end": whole(made, made.will_end),
        "limit": None if limit is None else {"y": float(limit.amount), "text": limit_text(made, limit)},
    }


def since_charged(past: Sequence[Point]) -> Sequence[Point]:
    """Without the days before anything was charged: of those nobody knows that they cost nothing. One point at the least."""
    first = next((number for number, point in enumerate(past) if point.amount), len(past))
    return past[max(first - 1, 0) :]


def limit_text(made: Forecast, limit: Limit) -> str:
    return _("budget %(amount)s") % {"amount": whole(made, limit.amount)}


def drawn(made: Forecast, points: Sequence[Point]) -> dict[str, list[Any]]:
    return {"x": [local(made, point.at) for point in points], "y": [round(float(point.amount), 2) for point in points]}


def local(made: Forecast, moment: Any) -> str:
    return f"{moment.astimezone(made.zone):%Y-%m-%dT%H:%M}"
