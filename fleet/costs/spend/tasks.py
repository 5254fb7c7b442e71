from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.spend.roll import sum_costs

# Less than the interval between two runs.
SUM_SECONDS = 60.0
# Months that are summed again go on where they take no worker from what looks at the fleet.
BACKLOG_SECONDS = 1_800.0


@shared_task(name="costs.sum_days")
def sum_days() -> None:
    if not sum_costs(now=timezone.now(), budget_seconds=SUM_SECONDS).is_complete:
        sum_backlog.apply_async(expires=BACKLOG_SECONDS)


@shared_task(name="costs.sum_backlog", soft_time_limit=3_300, time_limit=3_400)
def sum_backlog() -> None:
    sum_costs(now=timezone.now(), budget_seconds=BACKLOG_SECONDS)
