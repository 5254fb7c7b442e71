"""Background work of operations. Every task fetches by id and calls a use-case."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from fleet.inventory.operations.claims import due_ids
from fleet.inventory.operations.driver import drive
from fleet.inventory.operations.sweeping import sweep

logger = logging.getLogger(__name__)

# Later than that, the beat has sent it again.
EXPIRES_SECONDS = 10
# A listing has its own time-out; this one catches an adapter that hangs inside a call. Both end before the claim does.
SOFT_LIMIT_SECONDS = settings.POLL_TIMEOUT_SECONDS + 60
HARD_LIMIT_SECONDS = settings.POLL_TIMEOUT_SECONDS + 90


@shared_task(name="inventory.dispatch_operations")
def dispatch_operations() -> int:
    """An account whose provider hangs holds half of the places at most."""
    at_once = settings.OPERATIONS_AT_ONCE
    found = due_ids(now=timezone.now(), at_once=at_once, per_account=max(1, at_once // 2))
    for operation_id in found:
        drive_operation.apply_async((operation_id,), expires=EXPIRES_SECONDS)
    return len(found)


@shared_task(name="inventory.drive_operation", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def drive_operation(operation_id: int) -> None:
    """Does nothing where it was sent twice. Who waited for a free place need not wait for the next beat."""
    if drive(operation_id=operation_id):
        dispatch_operations()


@shared_task(name="inventory.sweep_operations")
def sweep_operations() -> int:
    return sweep(now=timezone.now())


def hurry(operation_id: int) -> None:
    """Sends it at once. A broker that is away costs the seconds to the next beat, no more: the intent is written."""
    try:
        drive_operation.apply_async((operation_id,), expires=EXPIRES_SECONDS)
    except OperationalError:
        logger.warning("Operation %s waits for the beat: the broker is away", operation_id)
