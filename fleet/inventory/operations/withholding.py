"""Whether an operation may still be sent. What people allowed when it was asked for, they may have taken back before a call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.journal import change, fail, note
from fleet.inventory.operations.models import Operation, OperationKind, OperationState
from fleet.inventory.operations.permits import ASKS_HOLDS, refuse_account, refuse_unmanaged
from fleet.inventory.operations.refusals import Held, LaunchBlocked, Refused
from fleet.inventory.plans.gate import newly_blocked

# What the rooms above look at once more before each call; "None" is no objection.
Objection = Callable[[Operation, datetime], Refused | None]
_objections: list[Objection] = []


def register_objection(object_to: Objection) -> None:
    """It reads rows only, and quickly: it is asked right before each call."""
    if object_to not in _objections:
        _objections.append(object_to)


def objection(operation: Operation, *, now: datetime) -> Refused | None:
    """Why it must not be sent now, read anew: what was loaded with the operation may be minutes old."""
    try:
        refuse_account(ProviderAccount.objects.get(pk=operation.account_id), OperationKind(operation.kind))
        if operation.instance_id is not None:
            refuse_unmanaged(Instance.objects.get(pk=operation.instance_id))
    except Refused as refusal:
        return refusal
    if newly_blocked(operation):
        return LaunchBlocked()
    if newly_held(operation, now=now):
        return Held()
    return next(filter(None, (object_to(operation, now) for object_to in _objections)), None)


def newly_held(operation: Operation, *, now: datetime) -> bool:
    """A reason that was given overrides the holds of its day, none that came later."""
    if operation.instance_id is None or operation.kind not in ASKS_HOLDS:
        return False
    holds = holds_in_force(now=now).filter(instance=operation.instance_id)
    if operation.override_reason:
        holds = holds.filter(started_at__gt=operation.requested_at)
    return holds.exists()


@transaction.atomic
def withhold(operation: Operation, refusal: Refused, *, at: datetime) -> None:
    """What was never sent has failed; of what was sent readings go on, and it is sent again once it may be."""
    if operation.state == OperationState.REQUESTED and not operation.uncertain:
        fail(operation, refusal.code, "", at=at)
    elif change(operation, error_kind=refusal.code, error_detail="", error_at=at, claimed_until=None):
        tell_once(operation, refusal.code, at=at)


def tell_once(operation: Operation, code: str, *, at: datetime) -> None:
    """Each look finds the same: one event for each call that was not made."""
    told = operation.events.filter(kind="withheld", error_kind=code, at__gte=operation.sent_at)
    if not told.exists():
        note(operation, "withheld", at=at, error_kind=code)
