"""What is said when a job's budget runs out."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.words import register_closed, register_words
from fleet.formats import money_text

BUDGET = "job.budget"
# What its signals begin with; the subject is the job, as of every alert about one.
FAMILY = "job_budget"
ENDED = "job_ended"


def budget_words(values: Mapping[str, Any]) -> str:
    currency = values["currency"]
    said = {
        "percent": values["percent"],
        "budget": money_text(Decimal(values["budget"]), currency),
        "spent": money_text(Decimal(values["spent"]), currency),
    }
    text = _("%(percent)d %% of the job's budget of %(budget)s is spent: %(spent)s") % said
    if values["is_floor"]:
        text = _("%(text)s, and some of its time at a price that nobody told") % {"text": text}
    if values["percent"] >= 100:
        return _("%(text)s. It is being stopped.") % {"text": text}
    if not values["heads_for"]:
        return text
    heads_for = money_text(Decimal(values["heads_for"]), currency)
    return _("%(text)s; it is heading for %(heads_for)s") % {"text": text, "heads_for": heads_for}


def register() -> None:
    register_words(FAMILY, budget_words)
    register_closed({ENDED: gettext_lazy("the job has ended")})
    register_cause(
        Cause(
            BUDGET,
            gettext_lazy("has almost spent its budget"),
            gettext_lazy(
                "Look at how far it is. At the whole of its budget it is stopped, politely first: let it write a checkpoint before, "
                "and begin it again with a larger budget if it is worth it."
            ),
            quietable=False,
        )
    )
