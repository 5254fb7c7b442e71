"""How an operation's row changes: by compare-and-set, with an event for each step and an audit row for what people must find again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationEvent, OperationState
from fleet.inventory.operations.signals import announce
from fleet.teams.audit import Actor, record

DRIVER = Actor.system("operations")


def note(operation: Operation, kind: str, *, at: datetime, detail: str = "", error_kind: str = "") -> OperationEvent:
    """One event, told to whoever listens once it is committed. Call it in the transaction of the change itself."""
    event = OperationEvent.objects.create(
        operation=operation,
        at=at,
        kind=kind,
        state=operation.state,
        seen_state=operation.seen_state,
        seen_billing=operation.seen_billing,
        error_kind=error_kind,
        detail=detail[:500],
    )
    announce(operation)
    return event


def change(operation: Operation, **values: Any) -> bool:
    """Writes `values` if the row is still as `operation` was read: same state, same claim. False: somebody else went on with it."""
    mine = Operation.objects.filter(pk=operation.pk, state=operation.state, claimed_until=operation.claimed_until)
    if not mine.update(**values):
        return False
    for name, value in values.items():
        setattr(operation, name, value)
    return True


def audit(operation: Operation, verb: str, *, actor: Actor = DRIVER, new: Mapping[str, Any] | None = None) -> None:
    """`verb`: requested, proved, failed or reopened."""
    action = {
        "requested": "operation.requested",
        "proved": "operation.proved",
        "failed": "operation.failed",
        "reopened": "operation.reopened",
    }[verb]
    values = {"act": operation.kind, "instance": operation.machine_name, **(new or {})}
    record(actor=actor, team=operation.team, action=action, target=operation, new=values)


def fail(
    operation: Operation, error_kind: str, detail: str, *, at: datetime, event: str = "failed", actor: Actor = DRIVER
) -> bool:
    """Ends it without a proof. False: it had ended, or somebody else went on with it."""
    failed = change(
        operation,
        state=OperationState.FAILED,
        failed_at=at,
        error_kind=error_kind,
        error_detail=detail[:500],
        error_at=at,
        claimed_until=None,
        sealed=b"",
    )
    if failed:
        note(operation, event, at=at, detail=detail, error_kind=error_kind)
        audit(operation, "failed", actor=actor, new={"error": error_kind, "reason": detail})
    return failed


def fail_over(operation: Operation, error_kind: str, detail: str, *, at: datetime, event: str, actor: Actor) -> bool:
    """The same over a worker's head: people may end what a worker has in hand, which then writes nothing."""
    locked = Operation.objects.select_for_update(of=("self",)).filter(pk=operation.pk, state__in=OPEN_STATES).first()
    return locked is not None and fail(locked, error_kind, detail, at=at, event=event, actor=actor)
