"""Background work of what jobs cost. Every task calls a use-case."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from jobs.spending.watch import watch_budgets


@shared_task(name="jobs.watch_budgets")
def watch_job_budgets() -> int:
    return watch_budgets(now=timezone.now())
