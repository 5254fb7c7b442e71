"""Background work of budgets."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.budgets.judging import judge_all
from fleet.costs.budgets.telling import note_deliveries


@shared_task(name="costs.judge_budgets")
def judge_budgets() -> int:
    now = timezone.now()
    note_deliveries()
    return judge_all(now=now)
