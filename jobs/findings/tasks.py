"""Background work of the diagnosis."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task
from django.dispatch import receiver
from django.utils import timezone
from kombu.exceptions import OperationalError

from fleet.telemetry.store.base import StoreError
from jobs.book.models import Attempt, JobState
from jobs.book.signals import job_ended
from jobs.findings.alerts.telling import tell_of_jobs
from jobs.findings.keep import examine

logger = logging.getLogger(__name__)


@shared_task(name="jobs.examine_running")
def examine_running() -> int:
    """One that cannot be looked at keeps no other from it."""
    found = 0
    for attempt in Attempt.objects.filter(state=JobState.RUNNING).select_related("job").order_by("pk"):
        found += _examine(attempt)
    return found


@shared_task(name="jobs.examine_ended")
def examine_ended(job_id: int) -> int:
    """Once more with all that there is: most of what explains an end is in the last lines."""
    attempt = Attempt.objects.filter(job=job_id).select_related("job").order_by("-number").first()
    return _examine(attempt) if attempt else 0


@shared_task(name="jobs.tell_of_jobs")
def tell_of_jobs_now() -> int:
    return tell_of_jobs(now=timezone.now())


def _examine(attempt: Attempt) -> int:
    try:
        return len(examine(attempt, now=timezone.now()))
    except StoreError:
        logger.warning("Attempt %d is not diagnosed: readings cannot be read", attempt.pk)
    except Exception:
        logger.exception("Attempt %d could not be diagnosed", attempt.pk)
    return 0


@receiver(job_ended)
def on_end(job_id: int, **_more: Any) -> None:
    try:
        examine_ended.apply_async((job_id,))
    except OperationalError:
        logger.warning("The end of job %s is not diagnosed: the broker is away", job_id)
