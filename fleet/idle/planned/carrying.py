"""Carries out what is planned for machines, whoever planned it. What was due while nobody carried out is done now, if it is still meant.

    planned ──due, told, still meant, not held, hook over──► taken ──proved──► done
       ▲  │                                                 │
       │  └─ held, something under way: waits               ├─ held before it was sent: planned again
       └──── called off, put off                            └─ failed ──later──► taken …

A step is one transaction: the operation is written together with the word that it was taken up, under a key of its own, so that whoever dies
between two steps has left either both or neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.alerts.planned_acts import call_off
from fleet.idle.planned.preparing import prepared
from fleet.idle.planned.steps import CARRIER, fail, keep_waiting, take
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import Gone, Held, OperationOpen, Refused
from fleet.inventory.operations.requests import request_start, request_stop, request_terminate
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionVerb
from fleet.inventory.plans.standing import still_stands
from fleet.providers.base import Billing, InstanceState

logger = logging.getLogger(__name__)

Verb = PlannedActionVerb
REQUESTS: dict[str, Callable[..., Operation]] = {
    Verb.START: request_start,
    Verb.STOP: request_stop,
    Verb.TERMINATE: request_terminate,
}
ENDED = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def due(now: datetime) -> QuerySet[PlannedAction]:
    """Nothing is stopped or terminated whose owner was not told; a start harms nobody."""
    told = Q(verb=Verb.START) | Q(notified_at__isnull=False)
    rested = Q(next_at=None) | Q(next_at__lte=now)
    return PlannedAction.objects.filter(told, rested, state__in=STANDING, due_at__lte=now)


def carry_out_due(*, now: datetime) -> int:
    """Returns how many were looked at. One that cannot be carried out keeps no other from it."""
    found = list(due(now).order_by("due_at", "pk").values_list("pk", flat=True))
    for pk in found:
        try:
            carry_out(action_id=pk, now=now)
        except Exception:
            logger.exception("The planned act %d could not be carried out", pk)
    return len(found)


@transaction.atomic
def carry_out(*, action_id: int, now: datetime) -> None:
    """One step of it. Does nothing where somebody else is at it, or it is not due any more."""
    rows = due(now).select_for_update(of=("self",), skip_locked=True).select_related("team", "instance__account")
    action = rows.filter(pk=action_id).first()
    if action is None:
        return
    if why := nothing_left(action, now=now):
        call_off(actor=CARRIER, actions=[action], why=why, now=now)
    elif is_held(action, now=now):
        keep_waiting(action, "held", now=now)
    elif prepared(action, now=now):
        order(action, now=now)


def nothing_left(action: PlannedAction, *, now: datetime) -> str:
    """Why nothing is to be done any more, a key of plans.actions.ENDED_WORDS; "" where it is."""
    if is_there(action.verb, action.instance):
        return "runs" if action.verb == Verb.START else "gone"
    if is_late(action, now):
        return "late"
    return "" if still_stands(action, now) else "lifted"


def is_there(verb: str, machine: Instance) -> bool:
    """The machine is already as it was to be. One that is off and billed in full is not off."""
    if machine.gone_at is not None or machine.state in ENDED:
        return True
    if verb == Verb.START:
        return machine.state == InstanceState.RUNNING
    is_off = machine.state == InstanceState.STOPPED and machine.billing != Billing.FULL
    return verb == Verb.STOP and is_off


def is_late(action: PlannedAction, now: datetime) -> bool:
    """A start that is overdue beyond its own next stop would only be stopped again."""
    until = action.values.get("until")
    return action.verb == Verb.START and bool(until) and datetime.fromisoformat(until) <= now


def is_held(action: PlannedAction, *, now: datetime) -> bool:
    return action.verb != Verb.START and holds_in_force(now=now).filter(instance=action.instance_id).exists()


def order(action: PlannedAction, *, now: datetime) -> None:
    more = {} if action.verb == Verb.START else {"accept_loss": action.values.get("accept_loss") is True}
    try:
        with transaction.atomic():
            operation = REQUESTS[action.verb](
                actor=CARRIER, instance=action.instance, idempotency_key=key_of(action), now=now, **more
            )
    except Held:
        keep_waiting(action, "held", now=now)
    except OperationOpen:
        keep_waiting(action, "operation_open", now=now)
    except Gone:
        call_off(actor=CARRIER, actions=[action], why="gone", now=now)
    except Refused as refusal:
        fail(action, refusal.code, "", now=now)
    else:
        take(action, operation)


def key_of(action: PlannedAction) -> str:
    """Of this try: a later one is another operation."""
    return f"planned:{action.pk}:{action.attempts}" if action.attempts else f"planned:{action.pk}"
