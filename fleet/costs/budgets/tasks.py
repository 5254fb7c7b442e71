"""Background work of budgets."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.budgets.judging import judge_all


@shared_task(name="costs.judge_budgets")
def judge_budgets() -> int:
    return judge_all(now=timezone.now())
