"""Background work about acceptance tests."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.quality.acceptance.asking import ask_fresh
from fleet.quality.acceptance.reports import judge_ended, write_report


@shared_task(name="quality.accept")
def accept_machines() -> int:
    """Asks for what is due, and judges what ended without being heard of."""
    now = timezone.now()
    judge_ended(now=now)
    return ask_fresh(now=now) if settings.ACCEPT_FRESH_MACHINES else 0


@shared_task(name="quality.judge_acceptance")
def judge_acceptance(action_id: int) -> None:
    write_report(action_id=action_id, now=timezone.now())
