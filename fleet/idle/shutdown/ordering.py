"""The order itself: looked at once more under the row's lock, then written as an intent of the inventory, which tells the provider.

All of it is one transaction over rows. That it will be ordered (`stopping`) was committed before; so a worker that dies in between is followed
by another that finds the same stop, looks again, and writes the same intent by the same key.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from fleet.idle.shutdown.course import against
from fleet.idle.shutdown.facts import facts_of
from fleet.idle.shutdown.fresh import speaks_against
from fleet.idle.shutdown.journal import IDLE, note
from fleet.idle.shutdown.models import IdleStop
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.refusals import Held, OperationOpen, Refused
from fleet.inventory.operations.requests import request_stop, request_terminate

_REQUESTS: dict[OperationKind, Callable[..., Operation]] = {
    OperationKind.STOP: request_stop,
    OperationKind.TERMINATE: request_terminate,
}


def key_of(stop: IdleStop) -> str:
    return f"idle-stop:{stop.pk}:{stop.orders}"


def order(stop: IdleStop, *, now: datetime) -> str:
    """Why it is called off after all, "" where it was ordered, refused, or ordered before. `stop` is locked, and written."""
    known = Operation.objects.filter(team=stop.team_id, idempotency_key=key_of(stop)).first()
    if known is not None:
        _ordered(stop, known, now)
        return ""
    if word := _objection(stop, now):
        return word
    try:
        _ordered(stop, _requested(stop, now), now)
    except OperationOpen as refusal:
        if refusal.operation.pk != stop.operation_id:
            # Somebody else's, also where it is the same act: what it saves is not ours to count.
            return "under_way"
        # An earlier order of this stop that is still being proved, and sent again by whoever proves it.
        _ordered(stop, refusal.operation, now)
    except Held:
        return "held"
    except Refused as refusal:
        _write(stop, refused=refusal.code)
        note(stop, "refused", at=now, detail=refusal.code)
    return ""


def _objection(stop: IdleStop, now: datetime) -> str:
    facts = facts_of(stop, now=now)
    if facts.in_office:
        return "office"
    return against(facts) or speaks_against(stop.instance, now=now)


def _requested(stop: IdleStop, now: datetime) -> Operation:
    return _REQUESTS[OperationKind(stop.verb)](
        actor=IDLE,
        instance=stop.instance,
        accept_loss=bool(stop.terms["accept_loss"]),
        idempotency_key=key_of(stop),
        now=now,
    )


def _ordered(stop: IdleStop, operation: Operation, now: datetime) -> None:
    _write(stop, operation=operation, refused="")
    note(stop, "ordered", at=now, values={"operation": operation.pk, "orders": stop.orders})


def _write(stop: IdleStop, **values: Any) -> None:
    IdleStop.objects.filter(pk=stop.pk).update(**values)
    for name, value in values.items():
        setattr(stop, name, value)
