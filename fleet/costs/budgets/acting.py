"""What a hard budget does: it keeps launches back, and plans stops of what runs. Brought to what must be, however often it is called."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import translation

from fleet.alerts.planned_acts import call_off, tell
from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.budgets.judge import SPENT
from fleet.costs.budgets.measuring import period_of
from fleet.costs.budgets.models import Budget, Crossing
from fleet.costs.budgets.words import spent_words
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.plans.actions import BY_ITSELF, plan_action
from fleet.inventory.plans.blocks import block_launches, lift_blocks_of
from fleet.inventory.plans.models import (
    STANDING,
    LaunchBlock,
    PlannedAction,
    PlannedActionState,
    PlannedActionVerb,
)
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
        notice = timedelta(hours=budget.notice_hours)
        for machine in to_be_stopped(budget, since):
            action = plan_action(
                actor=BUDGETS,
                instance=machine,
                verb=PlannedActionVerb.STOP,
                due_at=now + notice,
                source=budget.source,
                reason=reason,
                values=values,
                notice=notice,
                now=now,
            )
            tell(action, now=now)
    off = Q(instance__state__in=OFF) | Q(instance__gone_at__isnull=False)
    drop(standing(budget).filter(off), "gone", now)
    # The budget was changed, or the machine is somebody else's now.
    meant = covered(budget) if budget.stops else Instance.objects.none()
    drop(standing(budget).exclude(instance__in=meant.values("pk")), "lifted", now)


def reopen(budget: Budget, *, now: datetime) -> None:
    """What it was closed for is over."""
    lift_blocks_of(actor=BUDGETS, team=budget.team, source=budget.source, now=now)
    drop(standing(budget), "lifted", now)


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
        state=PlannedActionState.CANCELLED, ended_reason__in=BY_ITSELF
    )
    rows = rows.exclude(pk__in=planned.values("instance"))
    wanted = Operation.objects.filter(
        kind__in=(OperationKind.LAUNCH, OperationKind.START), requested_at__gte=since, instance__isnull=False
    ).exclude(override_reason="")
    return [machine for machine in rows.exclude(pk__in=wanted.values("instance")) if stoppable(machine)]


def standing(budget: Budget) -> QuerySet[PlannedAction]:
    rows = PlannedAction.objects.filter(team=budget.team_id, source=budget.source, state__in=STANDING)
    return rows.select_related("instance", "team")


def drop(actions: Iterable[PlannedAction], why: str, now: datetime) -> None:
    call_off(actor=BUDGETS, actions=actions, why=why, now=now)


def plan_stands(action: PlannedAction, now: datetime) -> bool:
    """Whether its budget still wants that machine stopped, by what it was judged last. In a new period nothing is spent yet."""
    source = action.source.partition(":")[2]
    budget = (
        Budget.objects.filter(pk=int(source), removed_at=None, hard=True, stops=True).select_related("team").first()
    )
    if budget is None or not (period := period_of(budget, now)).holds(now):
        return False
    spent = Crossing.objects.filter(
        budget=budget, period_from=period.first, revision=budget.revision, basis=SPENT.basis, percent=SPENT.percent,
        fell_back_at=None,
    )  # fmt: skip
    return spent.exists() and covered(budget).filter(pk=action.instance_id).exists()
