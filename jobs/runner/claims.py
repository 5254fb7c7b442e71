"""Whose turn an attempt is: one worker at a time, by compare-and-set; a claim is renewed by whoever works, runs out by itself, and is looked at in every write."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event, Thread

from django.db import DatabaseError, connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from jobs.book.models import OPEN_STATES, Attempt

logger = logging.getLogger(__name__)

# So long a job is not looked at after its worker was killed.
LEASE = timedelta(seconds=45)


def due(*, now: datetime) -> QuerySet[Attempt]:
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    return Attempt.objects.filter(free, state__in=OPEN_STATES, next_at__lte=now)


def claim(*, attempt_id: int, now: datetime) -> Attempt | None:
    """The attempt, for this worker alone. None: it is not due, has ended, or somebody else was quicker."""
    mine = uuid.uuid4()
    if not due(now=now).filter(pk=attempt_id).update(claim=mine, claimed_until=now + LEASE):
        return None
    return Attempt.objects.select_related("job__team", "job__created_by").get(pk=attempt_id, claim=mine)


@contextmanager
def kept(attempt: Attempt) -> Iterator[None]:
    """Renewed for as long as the block takes: a visit may last minutes. Ends with its process."""
    done = Event()
    renewing = Thread(target=_renew, args=(attempt, done), name="claim", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


def _renew(attempt: Attempt, done: Event) -> None:
    while not done.wait(LEASE.total_seconds() / 3):
        try:
            mine = Attempt.objects.filter(pk=attempt.pk, claim=attempt.claim)
            mine.update(claimed_until=timezone.now() + LEASE)
        except DatabaseError:
            logger.warning("The claim of attempt %d was not renewed this time", attempt.pk)
        finally:
            # This thread's own.
            connection.close()


def still_mine(attempt: Attempt) -> bool:
    """Within a transaction: locks the row, so that nobody takes it over before the commit."""
    return Attempt.objects.select_for_update().filter(pk=attempt.pk, claim=attempt.claim).exists()


def release(attempt: Attempt, *, next_at: datetime) -> None:
    """Unless somebody asked meanwhile for it to be looked at sooner."""
    Attempt.objects.filter(pk=attempt.pk, claim=attempt.claim, next_at=attempt.next_at).update(next_at=next_at)
    Attempt.objects.filter(pk=attempt.pk, claim=attempt.claim).update(claim=None, claimed_until=None)
