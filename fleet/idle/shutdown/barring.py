"""Why a machine must not be stopped although it is idle: what its policy, its account and its provider say. Read anew at each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.idle.policies.covering import JudgedBy, stops
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.verdict.evidence import Mode
from fleet.inventory.adapters import adapter_class
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind
from fleet.inventory.operations.permits import loses_data, refuse_account, refuse_untouchable
from fleet.inventory.operations.refusals import Refused
from fleet.providers.base import Part


def verb_of(policy: IdlePolicy) -> OperationKind:
    """Of a policy that stops."""
    return OperationKind(policy.action)


def why_not(machine: Instance, judged: JudgedBy) -> str:
    """A code of words.WHY, "" for nothing. What is under way on it is another question: `under_way`."""
    policy = judged.policy
    if policy is None or not stops(policy):
        return "policy"
    if judged.mode is Mode.PINNED:
        return "pinned"
    verb = verb_of(policy)
    try:
        refuse_untouchable(machine)
        refuse_account(machine.account, verb)
    except Refused as refusal:
        return refusal.code
    semantics = adapter_class(machine.account.kind).semantics
    if verb is OperationKind.STOP and Part.COMPUTE in semantics.billed_when_stopped:
        # Such a stop saves nothing: it could never be proved to have ended the bill.
        return "stop_bills"
    return "loses_data" if loses_data(semantics, verb) and not policy.accept_loss else ""


def changed_midway(policy: IdlePolicy | None, *, kept: Mapping[str, Any], policy_id: int | None) -> bool:
    """Whether people were warned by another policy than the one that covers it now, or by an earlier form of it."""
    return policy is None or policy.pk != policy_id or policy.revision != kept["revision"]


def under_way(machine: Instance, *, but: Operation | None = None) -> bool:
    """Whether somebody acts on it: an operation that is not this stop's own."""
    rows = Operation.objects.filter(instance=machine, state__in=OPEN_STATES)
    return (rows.exclude(pk=but.pk) if but is not None else rows).exists()
