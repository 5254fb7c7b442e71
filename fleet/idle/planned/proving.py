"""What became of the operations of planned acts. The row says what the operation's proof says, and nothing before that."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from fleet.alerts.door import clear_event
from fleet.alerts.planned_acts import FAILED, subject_of, untell
from fleet.idle.planned.steps import change, fail, finish, note, take_back
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.plans.models import PlannedAction, PlannedActionState

logger = logging.getLogger(__name__)

# Somebody's word ended it: it is not tried again.
GIVEN_UP = frozenset({"superseded", "abandoned"})


def settle_taken(*, now: datetime) -> int:
    """Returns how many ended or failed."""
    rows = PlannedAction.objects.filter(state=PlannedActionState.TAKEN).exclude(operation__state__in=OPEN_STATES)
    found = list(rows.select_related("team", "instance", "operation"))
    for action in found:
        try:
            settle(action, now=now)
        except Exception:
            logger.exception("What became of the planned act %d could not be written", action.pk)
    return len(found)


@transaction.atomic
def settle(action: PlannedAction, *, now: datetime) -> None:
    operation = action.operation
    if operation is None:
        fail(action, "refused", "", now=now)
    elif operation.proved_at is not None:
        finish(action, proved_at=operation.proved_at, now=now)
    elif operation.error_kind == "held":
        take_back(action, "held", now=now)
    elif operation.error_kind in GIVEN_UP:
        give_up(action, operation, now=now)
    else:
        fail(action, operation.error_kind, operation.error_detail, now=now)


def give_up(action: PlannedAction, operation: Operation, *, now: datetime) -> None:
    why = operation.error_kind
    if change(action, state=PlannedActionState.CANCELLED, ended_at=now, ended_reason=why):
        note(action, "cancel", {"reason": why})
        untell(action, now=now)
        clear_event(team=action.team, cause=FAILED, subject=subject_of(action), now=now)
