"""How a planned act's row changes: by compare-and-set, each in one transaction with its alert and its audit row."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import URGENT, WARNING
from fleet.alerts.planned_acts import FAILED, subject_of, untell
from fleet.idle.hooks.models import HookRun
from fleet.idle.savings.booking import book_saving
from fleet.inventory.operations.models import Operation
from fleet.inventory.plans.models import PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.teams.audit import Actor, record

CARRIER = Actor.system("planned acts")
# A hold may be released, and what is under way may end, before anybody said.
LOOKS_AGAIN = timedelta(minutes=1)
HOOK_LOOKS = timedelta(seconds=5)
FIRST_RETRY, LAST_RETRY = timedelta(minutes=5), timedelta(hours=1)


def change(action: PlannedAction, **values: Any) -> bool:
    """Writes `values` if it is still in the state that it was read in. False: somebody else went on with it."""
    if not PlannedAction.objects.filter(pk=action.pk, state=action.state).update(**values):
        return False
    for name, value in values.items():
        setattr(action, name, value)
    return True


def keep_waiting(action: PlannedAction, why: str, *, now: datetime, hook_run: HookRun | None = None) -> None:
    """It stands, and is put off: recorded when it begins to wait, not at each look. What a machine saved before is saved anew after it."""
    was, wait = action.waits_for, HOOK_LOOKS if hook_run else LOOKS_AGAIN
    if change(action, waits_for=why, next_at=now + wait, hook_run=hook_run) and was != why:
        note(action, "wait", {"reason": why})


def retry_after(attempts: int) -> timedelta:
    wait: timedelta = FIRST_RETRY * int(2 ** min(max(attempts - 1, 0), 8))
    return min(wait, LAST_RETRY)


@transaction.atomic
def fail(action: PlannedAction, kind: str, detail: str, *, now: datetime) -> None:
    """Not done, and tried again. The alert is urgent while the machine costs money, and so reminds every hour with what that came to."""
    attempts = action.attempts + 1
    failed = change(
        action,
        state=PlannedActionState.FAILED,
        attempts=attempts,
        error_kind=kind,
        error_detail=detail[:500],
        failed_at=action.failed_at or now,
        next_at=now + retry_after(attempts),
        waits_for="",
        hook_run=None,
    )
    if not failed:
        return
    is_start = action.verb == PlannedActionVerb.START
    raise_event(
        team=action.team,
        cause=FAILED,
        subject=subject_of(action),
        severity=WARNING if is_start else URGENT,
        signal="planned_failed",
        instance=action.instance,
        values={"act": action.verb, "error": kind, "detail": detail[:500], "attempts": attempts},
        since=max(action.due_at, action.notified_at or action.due_at),
        price_per_hour=Decimal(0) if is_start else None,
        currency=action.instance.currency,
        now=now,
    )
    if attempts == 1:
        note(action, "fail", {"error": kind, "reason": detail})


def take(action: PlannedAction, operation: Operation) -> bool:
    taken = change(
        action,
        state=PlannedActionState.TAKEN,
        operation=operation,
        attempts=action.attempts + 1,
        waits_for="",
        next_at=None,
    )
    if taken:
        note(action, "take", {})
    return taken


def take_back(action: PlannedAction, why: str, *, now: datetime) -> None:
    """Its operation was never sent, because of a word that came in between: it waits as it would have before."""
    if change(action, state=PlannedActionState.PLANNED, waits_for=why, next_at=now + LOOKS_AGAIN, hook_run=None):
        note(action, "wait", {"reason": why})


@transaction.atomic
def finish(action: PlannedAction, *, proved_at: datetime, now: datetime) -> None:
    operation = action.operation
    assert operation is not None
    if change(action, state=PlannedActionState.DONE, ended_at=proved_at, error_kind="", error_detail=""):
        note(action, "done", {})
        untell(action, now=now)
        clear_event(team=action.team, cause=FAILED, subject=subject_of(action), now=now)
        if action.verb != PlannedActionVerb.START:
            book_saving(
                instance=action.instance,
                action=action,
                since=proved_at,
                now=now,
                price_per_hour=operation.price_per_hour,
                currency=operation.currency,
            )


def note(planned: PlannedAction, verb: str, new: dict[str, Any]) -> None:
    """`verb`: wait, take, fail, cancel or done."""
    action = {
        "wait": "planned_action.wait",
        "take": "planned_action.take",
        "fail": "planned_action.fail",
        "cancel": "planned_action.cancel",
        "done": "planned_action.done",
    }[verb]
    said = {"act": planned.verb, "instance": planned.instance.name, **new}
    record(actor=CARRIER, team=planned.team, action=action, target=planned, new=said)
