"""What a job costs, as its page and the list say it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from django.utils.translation import gettext as _

from fleet.formats import amounts_text, money_text, whole_money_text
from jobs.book.models import Job
from jobs.pages.summary import Stat
from jobs.spending.cost import JobCost, cost_of_job

# Beyond the plan by more than this it is said in colour.
OVER = Decimal("1.1")


def cost_text(cost: JobCost) -> str:
    """With "at least" where some of its time has a price that nobody told; "" = nothing is known."""
    if cost.is_floor and not cost.amount and not cost.others:
        return ""
    amounts = {cost.currency: cost.amount, **cost.others} if cost.amount else dict(cost.others)
    said = amounts_text(amounts) if amounts else money_text(cost.amount, cost.currency)
    return _("at least %(money)s") % {"money": said} if cost.is_floor else said


def cost_stats(job: Job, now: datetime) -> Iterator[Stat]:
    if job.started_at is None:
        return
    cost = cost_of_job(job, now)
    said = cost_text(cost)
    note = (
        _("%(money)s/h now") % {"money": money_text(cost.per_hour, cost.currency)} if cost.per_hour is not None else ""
    )
    yield Stat(_("Cost so far"), said or _("unknown"), "", note if said else _("nobody told the price"))
    if cost.heads_for is None:
        return
    limit, words = _limit(job, cost.currency)
    slow = limit is not None and cost.heads_for > OVER * limit
    yield Stat(_("Heads for"), whole_money_text(cost.heads_for, cost.currency), "", words, slow=slow)


def _limit(job: Job, currency: str) -> tuple[Decimal | None, str]:
    """Its budget, else what was planned; only in the currency of the cost can it be compared."""
    if job.budget_amount is not None:
        said = _("budget %(money)s") % {"money": whole_money_text(job.budget_amount, job.budget_currency)}
        return (job.budget_amount if job.budget_currency == currency else None), said
    planned = job.predicted.get("cost")
    if not planned:
        return None, ""
    planned_currency = str(job.predicted.get("currency") or "USD")
    amount = Decimal(str(planned))
    said = _("plan %(figure)s") % {"figure": whole_money_text(amount, planned_currency)}
    return (amount if planned_currency == currency else None), said
