"""Whose turn an attempt is: one worker at a time, by compare-and-set; a claim runs out by itself and is looked at in every write."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from jobs.book.models import OPEN_STATES, Attempt

# Longer than a visit may take.
LEASE = timedelta(minutes=12)


def due(*, now: datetime) -> QuerySet[Attempt]:
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    return Attempt.objects.filter(free, state__in=OPEN_STATES, next_at__lte=now)


def claim(*, attempt_id: int, now: datetime) -> Attempt | None:
    """The attempt, for this worker alone. None: it is not due, has ended, or somebody else was quicker."""
    mine = uuid.uuid4()
    if not due(now=now).filter(pk=attempt_id).update(claim=mine, claimed_until=now + LEASE):
        return None
    return Attempt.objects.select_related("job__team", "job__created_by").get(pk=attempt_id, claim=mine)


def still_mine(attempt: Attempt) -> bool:
    """Within a transaction: locks the row, so that nobody takes it over before the commit."""
    return Attempt.objects.select_for_update().filter(pk=attempt.pk, claim=attempt.claim).exists()


def release(attempt: Attempt, *, next_at: datetime) -> None:
    """Unless somebody asked for it to be looked at sooner."""
    Attempt.objects.filter(pk=attempt.pk, claim=attempt.claim, next_at__lte=next_at).update(next_at=next_at)
    Attempt.objects.filter(pk=attempt.pk, claim=attempt.claim).update(claim=None, claimed_until=None)
