"""Carries out what the last step left to do. Each act and its being taken off `pending` are one transaction: done once, whoever dies when."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.idle.hooks.running import begin_hook
from fleet.idle.shutdown import telling
from fleet.idle.shutdown.claims import locked
from fleet.idle.shutdown.course import Act, Hook, Stage, call_off
from fleet.idle.shutdown.facts import facts_of
from fleet.idle.shutdown.journal import IDLE, note
from fleet.idle.shutdown.models import IdleStop, IdleStopStage
from fleet.idle.shutdown.ordering import order
from fleet.idle.shutdown.terms import terms_of
from fleet.idle.shutdown.writing import write
from fleet.inventory.operations.closing import abandon_operation


def carry_out(*, stop_id: int, token: uuid.UUID, now: datetime) -> bool:
    """All that is pending, in its order. False: the claim is lost."""
    while True:
        with transaction.atomic():
            stop = locked(stop_id, token)
            if stop is None:
                return False
            if not stop.pending:
                return True
            act, rest = Act(stop.pending[0]), stop.pending[1:]
            IdleStop.objects.filter(pk=stop.pk).update(pending=rest)
            stop.pending = rest
            _ACTS[act](stop, now)


def _warn(stop: IdleStop, now: datetime) -> None:
    # A worker that comes hours later has nothing to warn of: the next step calls it off.
    if stop.stage == IdleStopStage.WARNED:
        telling.warn(stop, now=now)


def _remind(stop: IdleStop, now: datetime) -> None:
    telling.remind(stop, now=now)
    note(stop, "reminded", at=now)


def _put_off(stop: IdleStop, now: datetime) -> None:
    telling.tell_put_off(stop, now=now)
    note(stop, "put_off", at=now, values={"deadline": stop.deadline.isoformat() if stop.deadline else None})


def _cancelled(stop: IdleStop, now: datetime) -> None:
    """What was sent and is not proved is not asked for again: the machine is in use, or somebody said no."""
    operation = stop.operation
    if operation is not None and operation.is_open:
        abandon_operation(actor=IDLE, operation=operation, reason=f"idle stop called off: {stop.why}", now=now)
    telling.tell_cancelled(stop, now=now)


def _run_hook(stop: IdleStop, now: datetime) -> None:
    run = begin_hook(instance=stop.instance, timeout=timedelta(seconds=stop.terms["hook_seconds"]), now=now)
    hook = Hook.NONE if run is None else Hook.RUNNING
    values: dict[str, Any] = {"hook_run": run, "hook": hook.value, "hook_started_at": None if run is None else now}
    IdleStop.objects.filter(pk=stop.pk).update(**values, hook_detail="")
    if run is not None:
        note(stop, "hook_begun", at=now, detail=run.way)


def _order(stop: IdleStop, now: datetime) -> None:
    if stop.stage != Stage.STOPPING:
        return
    if word := order(stop, now=now):
        facts = facts_of(stop, now=now)
        course, acts = call_off(facts, terms_of(stop.terms), word)
        write(stop, course, acts, now=now)


def _failed(stop: IdleStop, now: datetime) -> None:
    telling.tell_failed(stop, now=now)
    note(stop, "told", at=now, detail="failed")


def _stopped(stop: IdleStop, now: datetime) -> None:
    telling.tell_stopped(stop, now=now)


def _read(_stop: IdleStop, _now: datetime) -> None:
    """The inventory reads the provider until its operation is proved; what it has read is in the rows that the next step looks at."""


_ACTS: dict[Act, Callable[[IdleStop, datetime], None]] = {
    Act.WARN: _warn,
    Act.REMIND: _remind,
    Act.TELL_PUT_OFF: _put_off,
    Act.TELL_CANCELLED: _cancelled,
    Act.RUN_HOOK: _run_hook,
    Act.ORDER: _order,
    Act.READ: _read,
    Act.TELL_FAILED: _failed,
    Act.TELL_STOPPED: _stopped,
}
