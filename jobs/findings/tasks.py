"""Background work of the diagnosis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from celery import shared_task
from django.core.cache import cache
from django.dispatch import receiver
from django.utils import timezone
from kombu.exceptions import OperationalError

from fleet.telemetry.store.base import StoreError
from jobs.book.models import Attempt, JobState
from jobs.book.signals import job_ended
from jobs.findings.alerts.telling import tell_of_jobs
from jobs.findings.keep import examine

logger = logging.getLogger(__name__)
# Of the minute between two rounds: what is not looked at by then comes first in the next.
ROUND_SECONDS = 40.0
LAST = "jobs.examined_last"


@shared_task(name="jobs.examine_running")
def examine_running() -> int:
    return examine_round(clock=monotonic)


def examine_round(*, clock: Callable[[], float]) -> int:
    """Looks at running attempts in turn, no longer than ROUND_SECONDS; one that cannot be looked at keeps no other from it. Returns how many were."""
    began, seen = clock(), 0
    for pk in _in_turn():
        if clock() - began >= ROUND_SECONDS:
            break
        attempt = Attempt.objects.filter(pk=pk, state=JobState.RUNNING).select_related("job").first()
        if attempt is not None:
            _examine(attempt)
        seen += 1
        cache.set(LAST, pk, timeout=3600)
    return seen


def _in_turn() -> Iterator[int]:
    """The one after the last first, around."""
    running = list(Attempt.objects.filter(state=JobState.RUNNING).order_by("pk").values_list("pk", flat=True))
    last = cache.get(LAST) or 0
    yield from (pk for pk in running if pk > last)
    yield from (pk for pk in running if pk <= last)


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
