"""Background work about other tenants."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.quality.neighbours.judging import judge_neighbours, prune_evidence
from fleet.quality.neighbours.telling import tell_of_neighbours


@shared_task(name="quality.judge_neighbours")
def judge_shared_hosts() -> int:
    now = timezone.now()
    judged = judge_neighbours(now=now)
    tell_of_neighbours(now=now)
    return judged


@shared_task(name="quality.prune_neighbours")
def prune() -> int:
    return prune_evidence(now=timezone.now())
