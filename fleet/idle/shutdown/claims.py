"""Whose turn a stop is. The claim is set by compare-and-set, runs out by itself, and is looked at, under the row's lock, in every write."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from fleet.idle.shutdown.models import OPEN, UNTOLD, IdleStop

# A step reads and writes rows, and never waits for anybody outside.
LEASE = timedelta(minutes=2)


def due_ids(*, now: datetime, at_most: int) -> list[int]:
    """The longest due first."""
    return list(_due(now).order_by("next_at", "pk").values_list("pk", flat=True)[:at_most])


def claim(*, stop_id: int, now: datetime) -> uuid.UUID | None:
    """None: it is not due, is over, or somebody else was quicker."""
    token = uuid.uuid4()
    taken = _due(now).filter(pk=stop_id).update(claim=token, claimed_until=now + LEASE)
    return token if taken else None


def locked(stop_id: int, token: uuid.UUID) -> IdleStop | None:
    """The row, until the end of the transaction. None: the claim ran out, and somebody else went on."""
    rows = IdleStop.objects.select_for_update(of=("self",)).select_related(
        "team", "instance__account", "instance__team", "policy", "operation", "hook_run"
    )
    return rows.filter(pk=stop_id, claim=token).first()


def release(*, stop_id: int, token: uuid.UUID, next_at: datetime) -> None:
    IdleStop.objects.filter(pk=stop_id, claim=token).update(claim=None, claimed_until=None, next_at=next_at)


def _due(now: datetime) -> QuerySet[IdleStop]:
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    return IdleStop.objects.filter(OPEN | UNTOLD, free, next_at__lte=now)
