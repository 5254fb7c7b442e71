"""What is so of one stop now, read from rows: the verdict, people's words, the policy, the message that was sent, and what its provider shows."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.hooks.running import look_at_hook
from fleet.idle.policies.covering import judged_by
from fleet.idle.shutdown.barring import changed_midway, under_way, why_not
from fleet.idle.shutdown.course import Facts, Hook, Stage
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.office import office_until
from fleet.idle.shutdown.telling import delivered_at
from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationState
from fleet.providers.base import Billing, InstanceState

OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})
# Operations that failed so were taken back on this side, before their provider did anything.
WITHDRAWN = frozenset({"held", "in_use", "use_unknown"})
ORDERED = frozenset({Stage.STOPPING, Stage.VERIFYING, Stage.FAILED})


def facts_of(stop: IdleStop, *, now: datetime) -> Facts:
    """`stop` is locked, with its machine, policy, operation and hook."""
    verdict = IdleVerdictRow.objects.filter(instance=stop.instance_id).first()
    ordered = stop.operation if Stage(stop.stage) in ORDERED else None
    return Facts(
        now=now,
        idle=None if verdict is None else answered(verdict.answer),
        judged_at=verdict.judged_at if verdict else None,
        held=is_held(stop.instance, now),
        snoozed_until=stop.snoozed_until,
        delivered=stop.stage == Stage.WARNED and delivered_at(stop) is not None,
        hook=look_at_hook(stop.hook_run, now=now) if stop.hook_run else Hook.NONE,
        off_and_unbilled=off_and_unbilled(stop, ordered),
        refused=bool(stop.refused) or (ordered is not None and ordered.state == OperationState.FAILED),
        barred=barred(stop),
        office_until=None if stop.hurried_at else office_until(stop.policy, now),
        withdrawn=withdrawn(ordered),
    )


def answered(answer: str) -> bool | None:
    """None: unknown. A machine that is off is not idle: nothing is left to stop."""
    return {Answer.IDLE.value: True, Answer.ACTIVE.value: False, Answer.OFF.value: False}.get(answer)


def is_held(machine: Instance, now: datetime) -> bool:
    return holds_in_force(now=now).filter(instance=machine).exists()


def barred(stop: IdleStop) -> str:
    machine = stop.instance
    judged = judged_by([machine])[machine.pk]
    if changed_midway(judged.policy, kept=stop.terms, policy_id=stop.policy_id):
        return "policy"
    if code := why_not(machine, judged):
        return code
    if machine.state in OFF:
        return "off"
    return "under_way" if under_way(machine, but=stop.operation) else ""


def withdrawn(operation: Operation | None) -> str:
    if operation is None or operation.state != OperationState.FAILED or operation.accepted_at is not None:
        return ""
    return operation.error_kind if operation.error_kind in WITHDRAWN else ""


def off_and_unbilled(stop: IdleStop, operation: Operation | None) -> bool | None:
    """What the provider was read to show since the order, of which an answer to the order is no part. None: not read since.

    Proved by the operation and by the machine's own row together; where nobody proves it any more (given up, refused), by a later
    listing that leaves no doubt about the money.
    """
    machine = stop.instance
    if stop.ordered_at is None or operation is None:
        return None
    off = machine.gone_at is not None or machine.state in OFF
    if operation.state == OperationState.PROVED:
        return off and machine.billing != Billing.FULL
    read_at = max(filter(None, (machine.last_seen_at, machine.probed_at, machine.gone_at)))
    if read_at <= stop.ordered_at:
        return None
    unbilled = machine.gone_at is not None or machine.billing in {Billing.NONE, Billing.STORAGE}
    return operation.state == OperationState.FAILED and off and unbilled
