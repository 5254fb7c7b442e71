"""What a hard budget does: it keeps launches back, and plans stops of what runs. Brought to what must be, however often it is called."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import translation

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import WARNING
from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.budgets.models import Budget
from fleet.costs.budgets.words import PLANNED, spent_words
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.plans.actions import ENDED_WORDS, cancel_action, plan_action
from fleet.inventory.plans.blocks import block_launches, lift_blocks_of
from fleet.inventory.plans.models import LaunchBlock, PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.providers.base import Billing, Capability, InstanceState
from fleet.teams.audit import Actor

BUDGETS = Actor.system("budgets")
OFF = frozenset({InstanceState.STOPPED, InstanceState.STOPPING, InstanceState.TERMINATED, InstanceState.TERMINATING})


def close(budget: Budget, *, since: datetime, values: dict[str, Any], now: datetime) -> None:
    """Nothing more may be spent. `since`: when it was reached; what people took back after that stays taken back."""
    with translation.override("en"):
        reason = spent_words(values)
    if blocks_others(budget):
        lift_blocks_of(actor=BUDGETS, team=budget.team, source=budget.source, now=now)
    if not lifted_by_a_person(budget, since):
        block_launches(
            actor=BUDGETS,
            team=budget.team,
            source=budget.source,
            reason=reason,
            values=values,
            now=now,
            account=budget.account,
            project=budget.project,
            owner=budget.owner,
        )
    if budget.stops:
        due_at = now + timedelta(hours=budget.notice_hours)
        for machine in to_be_stopped(budget, since):
            action = plan_action(
                actor=BUDGETS,
                instance=machine,
                verb=PlannedActionVerb.STOP,
                due_at=due_at,
                source=budget.source,
                reason=reason,
                values=values,
                now=now,
            )
            tell(action, now=now)
    off = Q(instance__state__in=OFF) | Q(instance__gone_at__isnull=False)
    call_off(standing(budget).filter(off), "gone", now)
    # The budget was changed, or the machine is somebody else's now.
    meant = covered(budget) if budget.stops else Instance.objects.none()
    call_off(standing(budget).exclude(instance__in=meant.values("pk")), "lifted", now)


def reopen(budget: Budget, *, now: datetime) -> None:
    """What it was closed for is over."""
    lift_blocks_of(actor=BUDGETS, team=budget.team, source=budget.source, now=now)
    call_off(standing(budget), "lifted", now)


def lifted_by_a_person(budget: Budget, since: datetime) -> bool:
    rows = LaunchBlock.objects.filter(team=budget.team_id, source=budget.source, lifted_at__gte=since)
    return rows.exclude(lifted_reason="").exists()


def blocks_others(budget: Budget) -> bool:
    """What was written before the budget was changed covers what it was of then."""
    standing_one = LaunchBlock.objects.filter(team=budget.team_id, source=budget.source, lifted_at=None)
    return standing_one.exclude(account=budget.account, project=budget.project, owner=budget.owner).exists()


def covered(budget: Budget) -> QuerySet[Instance]:
    """Its machines that are there and charged for, or may be: those that people gave to it, and those that rules did."""
    rows = Instance.objects.filter(team=budget.team_id, gone_at=None, managed=True).exclude(billing=Billing.NONE)
    if budget.account_id:
        rows = rows.filter(account=budget.account_id)
    whose = {name: pk for name, pk in (("project", budget.project_id), ("owner", budget.owner_id)) if pk}
    if whose:
        spans = AttributionSpan.objects.filter(instance=OuterRef("pk"), period__upper_inf=True, **whose)
        rows = rows.filter(Q(**whose) | Exists(spans))
    return rows.select_related("account", "team", "owner")


def stoppable(machine: Instance) -> bool:
    account = machine.account
    return not account.monitor_only and account.disconnected_at is None and can(account, Capability.STOP)


def to_be_stopped(budget: Budget, since: datetime) -> Iterable[Instance]:
    """Those that run and can be stopped; not what a person called off or an admin launched all the same."""
    rows = covered(budget).exclude(state__in=OFF)
    # Planned before the budget was changed and called off after it is as much called off.
    lately = Q(created_at__gte=since) | Q(ended_at__gte=since)
    planned = PlannedAction.objects.filter(lately, source=budget.source).exclude(
        state=PlannedActionState.CANCELLED, ended_reason__in=ENDED_WORDS
    )
    rows = rows.exclude(pk__in=planned.values("instance"))
    wanted = Operation.objects.filter(
        kind__in=(OperationKind.LAUNCH, OperationKind.START), requested_at__gte=since, instance__isnull=False
    ).exclude(override_reason="")
    return [machine for machine in rows.exclude(pk__in=wanted.values("instance")) if stoppable(machine)]


def standing(budget: Budget) -> QuerySet[PlannedAction]:
    rows = PlannedAction.objects.filter(team=budget.team_id, source=budget.source, state=PlannedActionState.PLANNED)
    return rows.select_related("instance", "team")


def call_off(actions: Iterable[PlannedAction], why: str, now: datetime) -> None:
    for action in actions:
        if cancel_action(actor=BUDGETS, action=action, reason=why, now=now):
            untell(action, now=now)


def subject_of(action: PlannedAction) -> str:
    return f"planned_act:{action.pk}"


def tell(action: PlannedAction, *, now: datetime) -> None:
    """Owners hear of it on their own channels, as of anything about their machines."""
    raise_event(
        team=action.team,
        cause=PLANNED,
        subject=subject_of(action),
        severity=WARNING,
        signal="planned_act",
        instance=action.instance,
        values={**action.values, "act": action.verb, "due_at": action.due_at.isoformat()},
        now=now,
    )


def untell(action: PlannedAction, *, now: datetime) -> None:
    clear_event(team=action.team, cause=PLANNED, subject=subject_of(action), now=now)
