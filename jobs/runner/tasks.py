"""Background work of jobs. Every task fetches by id and calls a use-case."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task
from django.dispatch import receiver
from django.utils import timezone
from kombu.exceptions import OperationalError

from jobs.book.signals import attempt_due
from jobs.runner.claims import due
from jobs.runner.drive import drive

logger = logging.getLogger(__name__)
# Later than that, the beat has sent it again.
EXPIRES_SECONDS = 10
# A visit has its own ends; these catch a machine that keeps a connection open for ever.
SOFT_LIMIT_SECONDS, HARD_LIMIT_SECONDS = 600, 660
AT_ONCE = 50


@shared_task(name="jobs.dispatch_attempts")
def dispatch_attempts() -> int:
    found = list(due(now=timezone.now()).order_by("next_at").values_list("pk", flat=True)[:AT_ONCE])
    for attempt_id in found:
        drive_attempt.apply_async((attempt_id,), expires=EXPIRES_SECONDS)
    return len(found)


@shared_task(name="jobs.drive_attempt", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def drive_attempt(attempt_id: int) -> bool:
    """Does nothing where it was sent twice."""
    return drive(attempt_id=attempt_id)


@receiver(attempt_due)
def hurry(attempt_id: int, **_more: Any) -> None:
    """Sends it at once. A broker that is away costs the seconds to the next beat, no more."""
    try:
        drive_attempt.apply_async((attempt_id,), expires=EXPIRES_SECONDS)
    except OperationalError:
        logger.warning("Attempt %s waits for the beat: the broker is away", attempt_id)
