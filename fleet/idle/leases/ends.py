"""When machines come to an end: by their lease, by the most that their policy lets them run, or because they were left stopped for too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from fleet.idle.policies.covering import judged_by
from fleet.idle.policies.models import IdleAction, IdlePolicy, MachineUse
from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedActionVerb
from fleet.providers.base import Billing, InstanceState

LEASE, MAX_AGE, DELETE = "lease", "max_age", "delete"
SOURCES = (LEASE, MAX_AGE, DELETE)
MOST_NOTICE, DELETE_NOTICE = timedelta(hours=24), timedelta(hours=48)
RUNS = frozenset({InstanceState.RUNNING, InstanceState.STARTING, InstanceState.PROVISIONING})


@dataclass(frozen=True, slots=True)
class End:
    """`ends_at` is what it is known by: a person who called it off called off that end, and no later one.

    `notice`: so long before it its owner is told, and at least so long after that it is done. `values`: JSON-ready, for its words.
    """

    source: str
    verb: PlannedActionVerb
    ends_at: datetime
    notice: timedelta
    values: dict[str, object] = field(default_factory=dict)


def ends_of(machines: Sequence[Instance]) -> dict[int, End]:
    """By the machine's id, those that have one. A constant number of queries."""
    policies = judged_by(machines)
    uses = {use.instance_id: use for use in MachineUse.objects.filter(instance__in=machines, lease_until__isnull=False)}
    found = {}
    for machine in machines:
        end = end_of(machine, policies[machine.pk].policy, uses)
        if end is not None:
            found[machine.pk] = end
    return found


def end_of(machine: Instance, policy: IdlePolicy | None, uses: Mapping[int, MachineUse]) -> End | None:
    """A person's word on how long it may run outweighs the policy's. Machines that nobody may touch have no end."""
    if not machine.managed or machine.gone_at is not None or machine.account.monitor_only:
        return None
    if machine.state == InstanceState.STOPPED:
        return deletion_of(machine, policy)
    if machine.state not in RUNS:
        return None
    return next(chain(_lease_of(machine, uses.get(machine.pk)), _age_of(machine, policy)), None)


def run_since(machine: Instance) -> datetime:
    return machine.started_at or machine.state_since


def _lease_of(machine: Instance, use: MachineUse | None) -> Iterator[End]:
    """What was started after its lease had ended has a new life; the old lease says nothing of it."""
    if use is None or use.lease_until is None or run_since(machine) > use.lease_until:
        return
    span = use.lease_until - max(run_since(machine), use.changed_at)
    yield End(LEASE, PlannedActionVerb.STOP, use.lease_until, notice_of(span), {"until": use.lease_until.isoformat()})


def _age_of(machine: Instance, policy: IdlePolicy | None) -> Iterator[End]:
    if policy is None or policy.max_age_hours is None:
        return
    span = timedelta(hours=policy.max_age_hours)
    ends = policy.action == IdleAction.TERMINATE and policy.accept_loss
    verb = PlannedActionVerb.TERMINATE if ends else PlannedActionVerb.STOP
    values = {"policy": policy.name, "hours": policy.max_age_hours, "accept_loss": policy.accept_loss}
    yield End(MAX_AGE, verb, run_since(machine) + span, notice_of(span), values)


def notice_of(span: timedelta) -> timedelta:
    """A day, or a quarter of what is shorter than four."""
    return min(MOST_NOTICE, max(span, timedelta(0)) / 4)


def deletion_of(machine: Instance, policy: IdlePolicy | None) -> End | None:
    """Never without somebody's consent, and of what is billed in full nobody knows that it is off."""
    if policy is None or policy.delete_after_days is None or policy.delete_consent_at is None:
        return None
    if machine.billing == Billing.FULL:
        return None
    values = {"policy": policy.name, "days": policy.delete_after_days, "accept_loss": True}
    ends_at = machine.state_since + timedelta(days=policy.delete_after_days)
    return End(DELETE, PlannedActionVerb.TERMINATE, ends_at, DELETE_NOTICE, values)
