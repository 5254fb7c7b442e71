"""Whose turn an operation is. One worker at a time: the claim is set by compare-and-set, runs out by itself, and is looked at in every write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from fleet.inventory.operations.models import OPEN_STATES, Operation

# Longer than a step may take, so that no claim runs out while its worker is in a call.
LEASE = timedelta(seconds=settings.POLL_TIMEOUT_SECONDS + 120)


def due(*, now: datetime) -> QuerySet[Operation]:
    return Operation.objects.filter(_free(now), state__in=OPEN_STATES, next_at__lte=now)


def due_ids(*, now: datetime, at_once: int, per_account: int) -> list[int]:
    """The longest due first, so many of each account that a broken one leaves workers to the others."""
    busy = _busy(now)
    free = at_once - sum(busy.values())
    chosen: list[int] = []
    for pk, account_id in _head(now, per_account):
        if len(chosen) >= free:
            break
        if busy.get(account_id, 0) < per_account:
            busy[account_id] = busy.get(account_id, 0) + 1
            chosen.append(pk)
    return chosen


def claim(*, operation_id: int, now: datetime) -> Operation | None:
    """The operation, for this worker alone. None: it is not due, has ended, or somebody else was quicker."""
    until = now + LEASE
    taken = due(now=now).filter(pk=operation_id).update(claimed_until=until)
    if not taken:
        return None
    rows = Operation.objects.select_related("account", "instance__account", "team", "project", "requested_by")
    return rows.filter(pk=operation_id, claimed_until=until, state__in=OPEN_STATES).first()


def _free(now: datetime) -> Q:
    return Q(claimed_until=None) | Q(claimed_until__lte=now)


def _busy(now: datetime) -> dict[int, int]:
    claimed = Operation.objects.filter(state__in=OPEN_STATES, claimed_until__gt=now)
    return dict(claimed.values_list("account_id").annotate(count=Count("pk")))


def _head(now: datetime, per_account: int) -> Sequence[tuple[int, int]]:
    """The first few of each account, in the order of their time."""
    place = Window(RowNumber(), partition_by=F("account_id"), order_by=("next_at", "pk"))
    first = due(now=now).annotate(place=place).filter(place__lte=per_account)
    return list(first.order_by("next_at", "pk").values_list("pk", "account_id"))
