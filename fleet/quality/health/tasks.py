"""Background work about the health of machines."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.quality.health.days import count_health, prune_health
from fleet.quality.health.providers import score_providers


@shared_task(name="quality.count_health")
def count() -> int:
    now = timezone.now()
    written = count_health(now=now)
    score_providers(now=now)
    return written


@shared_task(name="quality.prune_health")
def prune() -> int:
    return prune_health(now=timezone.now())
