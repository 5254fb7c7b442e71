"""What budgets are called, and what is said when a part of one is reached."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.words import register_words
from fleet.costs.budgets.judge import Measure
from fleet.costs.budgets.models import Budget
from fleet.costs.budgets.periods import Period
from fleet.formats import money_text
from fleet.inventory.plans.reasons import register_reason

Values = Mapping[str, Any]
REACHED = "budget.reached"


def scope_words(budget: Budget) -> str:
    if budget.project is not None:
        return _("project %(name)s") % {"name": budget.project.name}
    if budget.owner is not None:
        return _("machines of %(name)s") % {"name": budget.owner.display_name}
    if budget.account is not None:
        return _("account %(name)s") % {"name": budget.account.name}
    return _("the whole team")


def period_words(first: date, until: date) -> str:
    """As in "November 2026" or "2026-11-10 to 2027-02-09": the last day is inside."""
    if first.day == 1 and until == (first + timedelta(days=32)).replace(day=1):
        return date_format(first, "F Y")
    last = until - timedelta(days=1)
    return _("%(first)s to %(last)s") % {"first": first.isoformat(), "last": last.isoformat()}


def values_of(budget: Budget, period: Period, **more: Any) -> dict[str, Any]:
    """JSON-ready, for the words of blocks, plans and alerts."""
    return {
        "budget": budget.name,
        "amount": str(budget.amount),
        "currency": budget.currency,
        "first": period.first.isoformat(),
        "until": period.until.isoformat(),
        **more,
    }


def spent_words(values: Values) -> str:
    """Why launches are blocked or stops are planned."""
    return _("the budget %(budget)s of %(amount)s for %(period)s is spent") % _said(values)


def reached_words(values: Values) -> str:
    said = {**_said(values), "percent": values["percent"], "spent": _money(values, "spent")}
    if values["basis"] == Measure.FORECAST:
        said["will_end"] = _money(values, "will_end")
        text = _(
            "%(period)s is heading for %(will_end)s, %(percent)d %% or more of the budget of %(amount)s; %(spent)s spent so far"
        )
        return text % said
    text = _("%(percent)d %% of the budget of %(amount)s for %(period)s is spent: %(spent)s") % said
    if values["will_end"]:
        text = _("%(text)s; it is heading for %(will_end)s") % {"text": text, "will_end": _money(values, "will_end")}
    return _("%(text)s. Nothing more is launched or started.") % {"text": text} if values["blocks"] else text


def _said(values: Values) -> dict[str, str]:
    period = period_words(date.fromisoformat(values["first"]), date.fromisoformat(values["until"]))
    return {"budget": values["budget"], "amount": _money(values, "amount"), "period": period}


def _money(values: Values, name: str) -> str:
    return money_text(Decimal(values[name]), values["currency"])


def register() -> None:
    register_reason("budget", spent_words)
    register_words("budget", reached_words, named="budget")
    register_cause(
        Cause(
            REACHED,
            gettext_lazy("has reached a threshold of its budget"),
            gettext_lazy(
                "Look under Costs at what it went into. Stop what is not needed, or raise the budget if the money is meant to be spent."
            ),
            quietable=False,
        )
    )
