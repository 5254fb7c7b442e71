from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.book.build import build_ledger

# Less than the minute between two runs.
BUILD_SECONDS = 45.0


@shared_task(name="costs.build_ledger")
def build() -> int:
    return build_ledger(now=timezone.now(), budget_seconds=BUILD_SECONDS).rows
