"""Holds jobs to their budgets: an alert at 80 %, a polite stop at 100 %. Brought to what must be, however often it is called."""

from __future__ import annotations

import logging
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import URGENT, WARNING
from fleet.alerts.models import Alert
from fleet.teams.audit import Actor, record
from jobs.book.events import note
from jobs.book.models import OPEN_STATES, Attempt, Job
from jobs.book.signals import announce
from jobs.spending.cost import JobCost, cost_of_job
from jobs.spending.words import BUDGET, ENDED, FAMILY

logger = logging.getLogger(__name__)
SPENDING = Actor.system("jobs")
NEAR, SPENT = 80, 100


def watch_budgets(*, now: datetime) -> int:
    """Returns how many jobs are to be stopped from now on. One that cannot be judged keeps no other from it."""
    stopped = 0
    for job in Job.objects.filter(state__in=OPEN_STATES).exclude(budget_amount=None).select_related("team"):
        try:
            stopped += hold_to_budget(job, now=now)
        except Exception:
            logger.exception("The budget of job %d could not be judged", job.pk)
    close_ended(now=now)
    return stopped


def hold_to_budget(job: Job, *, now: datetime) -> bool:
    """Whether it is to be stopped from now on."""
    assert job.budget_amount is not None
    cost = cost_of_job(job, now, into=job.budget_currency)
    spent = cost.amount if cost.currency == job.budget_currency else Decimal(0)
    percent = reached(spent, job.budget_amount)
    if not percent:
        return False
    tell(job, cost, percent, now)
    return percent >= SPENT and spend_budget(job=job, spent=spent, now=now)


def reached(spent: Decimal, budget: Decimal) -> int:
    """The threshold that is reached, 0 = none."""
    return next((percent for percent in (SPENT, NEAR) if spent * 100 >= budget * percent), 0)


def tell(job: Job, cost: JobCost, percent: int, now: datetime) -> None:
    raise_event(
        team=job.team,
        cause=BUDGET,
        subject=subject_of(job),
        severity=URGENT if percent >= SPENT else WARNING,
        signal=f"{FAMILY}:{percent}",
        values=values_of(job, cost, percent),
        price_per_hour=cost.per_hour or Decimal(0),
        currency=cost.currency,
        now=now,
    )


def subject_of(job: Job) -> str:
    return f"job:{job.pk}"


def values_of(job: Job, cost: JobCost, percent: int) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "job": job.name,
        "job_id": job.pk,
        "percent": percent,
        "budget": str(job.budget_amount),
        "currency": job.budget_currency,
        "spent": str(cost.amount),
        "heads_for": "" if cost.heads_for is None else str(cost.heads_for),
        "is_floor": cost.is_floor,
    }


@transaction.atomic
def spend_budget(*, job: Job, spent: Decimal, now: datetime) -> bool:
    """It has cost what it may: its runner stops it, politely first. False where it is stopped for that already, or has ended."""
    if not Job.objects.filter(pk=job.pk, budget_spent_at=None, state__in=OPEN_STATES).update(budget_spent_at=now):
        return False
    said = {"spent": f"{spent:.2f}", "budget": str(job.budget_amount), "currency": job.budget_currency}
    note(job, "budget_spent", at=now, detail=f"{said['spent']} {said['currency']}")
    record(actor=SPENDING, team=job.team, action="job.spend", target=job, new={"name": job.name, **said})
    attempt = job.attempts.order_by("-number").first()
    if attempt is not None:
        Attempt.objects.filter(pk=attempt.pk).update(next_at=now)
        transaction.on_commit(partial(announce, attempt.pk))
    return True


def close_ended(*, now: datetime) -> None:
    """Alerts of jobs that have ended are over."""
    open_jobs = Job.objects.filter(state__in=OPEN_STATES).exclude(budget_amount=None)
    standing = {subject_of(job) for job in open_jobs.only("pk")}
    for alert in (
        Alert.objects.filter(cause=BUDGET, closed_at=None).exclude(subject__in=standing).select_related("team")
    ):
        clear_event(team=alert.team, cause=BUDGET, subject=alert.subject, now=now, why=ENDED)
