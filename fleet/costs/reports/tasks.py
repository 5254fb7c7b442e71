from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.reports.sending import send_due


@shared_task(name="costs.send_reports", soft_time_limit=500, time_limit=540)
def send_reports() -> int:
    return send_due(now=timezone.now())
