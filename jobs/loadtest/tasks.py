"""Background work of load tests."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task
from django.dispatch import receiver
from django.utils import timezone
from kombu.exceptions import OperationalError

from jobs.loadtest.manage import end_silent, load_test_due
from jobs.loadtest.models import LoadState, LoadTest
from jobs.loadtest.plan import MOST_SECONDS
from jobs.loadtest.run import MORE_SECONDS, run_load_test

logger = logging.getLogger(__name__)
# Each test has its own ends; these catch one that keeps none of them.
# The beat sends it again then.
SEND_AGAIN_SECONDS = 60
SOFT_LIMIT_SECONDS = int(MOST_SECONDS + 3 * MORE_SECONDS)


@shared_task(name="jobs.run_load_test", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=SOFT_LIMIT_SECONDS + 60)
def run_load_test_task(test_id: int) -> bool:
    """Does nothing where it was sent twice."""
    return run_load_test(test_id=test_id)


@shared_task(name="jobs.watch_load_tests")
def watch_load_tests() -> int:
    """Sends anew those that the broker did not hear of, and ends those that nobody carries on."""
    waiting = LoadTest.objects.filter(state=LoadState.QUEUED, cancel_asked_at=None)
    for test_id in waiting.values_list("pk", flat=True)[:50]:
        send(test_id)
    return end_silent(now=timezone.now())


@receiver(load_test_due)
def send(test_id: int, **_more: Any) -> None:
    try:
        run_load_test_task.apply_async((test_id,), expires=SEND_AGAIN_SECONDS)
    except OperationalError:
        logger.warning("Load test %s waits for the beat: the broker is away", test_id)
