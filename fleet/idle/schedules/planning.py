"""Writes what schedules want of their machines as planned acts: a while before each edge, so that owners are told, and by state after a downtime.

Each edge is dealt with once for a machine (`ScheduleEdge`). What a person does after it, and what they call off, is theirs until the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import translation

from fleet.alerts.planned_acts import call_off, tell
from fleet.idle.schedules.covering import clock_of, machines_of, may
from fleet.idle.schedules.edges import Edge, Turn, last_edge, next_edges
from fleet.idle.schedules.models import PowerSchedule, ScheduleEdge
from fleet.idle.schedules.words import KIND, edge_words, source_of
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.plans.actions import plan_action
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionVerb
from fleet.providers.base import InstanceState
from fleet.teams.audit import Actor

logger = logging.getLogger(__name__)
SCHEDULES = Actor.system("schedules")
OFF = frozenset({InstanceState.STOPPED, InstanceState.STOPPING})
# What people do to a machine against an edge.
AGAINST = {
    Turn.STOP: (OperationKind.START, OperationKind.LAUNCH, OperationKind.REBOOT),
    Turn.START: (OperationKind.STOP,),
}


def plan_schedules(*, now: datetime) -> int:
    """Returns how many acts were planned. One schedule that cannot be read keeps no other from it."""
    planned = 0
    for schedule in PowerSchedule.objects.filter(enabled=True, removed_at=None).select_related("team").order_by("pk"):
        try:
            planned += plan_schedule(schedule=schedule, now=now)
        except Exception:
            logger.exception("The schedule %d could not be planned", schedule.pk)
    return planned


def plan_schedule(*, schedule: PowerSchedule, now: datetime) -> int:
    edges = edges_now(schedule, now)
    if not edges:
        return 0
    dealt = set(
        ScheduleEdge.objects.filter(schedule=schedule, at__in=[edge.at for edge in edges]).values_list("instance", "at")
    )
    return sum(
        deal_with(schedule, machine, edge, now=now)
        for machine in machines_of(schedule)
        for edge in edges
        if (machine.pk, edge.at) not in dealt and edge.at >= machine.first_seen_at
    )


def edges_now(schedule: PowerSchedule, now: datetime) -> list[Edge]:
    """The last that came, and the next once its notice has begun. What came before the schedule was made or changed is none of it."""
    clock = clock_of(schedule)
    last, following = last_edge(clock, now), next_edges(clock, now, 1)
    notice = timedelta(minutes=schedule.notice_minutes)
    soon = [edge for edge in following if edge.at - notice <= now]
    return [edge for edge in (*([last] if last else []), *soon) if edge.at >= schedule.since]


@transaction.atomic
def deal_with(schedule: PowerSchedule, machine: Instance, edge: Edge, *, now: datetime) -> bool:
    """True: an act was planned. A machine that is as it is to be waits for its edge: it may change until then."""
    if not may(machine, edge.turn):
        return False
    if is_as_wanted(machine, edge) or (edge.at <= now and is_somebodys(machine, edge)):
        if edge.at <= now:
            mark(schedule, machine, edge, None)
        return False
    row = mark(schedule, machine, edge, None)
    if row is None:
        return False
    row.planned_action = plan(schedule, machine, edge, now=now)
    row.save(update_fields=["planned_action"])
    return True


def mark(schedule: PowerSchedule, machine: Instance, edge: Edge, action: PlannedAction | None) -> ScheduleEdge | None:
    """None: another worker dealt with it."""
    row, is_new = ScheduleEdge.objects.get_or_create(
        schedule=schedule, instance=machine, at=edge.at, defaults={"verb": edge.turn, "planned_action": action}
    )
    return row if is_new else None


def is_as_wanted(machine: Instance, edge: Edge) -> bool:
    return machine.state in OFF if edge.turn is Turn.STOP else machine.state == InstanceState.RUNNING


def is_somebodys(machine: Instance, edge: Edge) -> bool:
    """A person started or stopped it after the edge came, here or at its provider, while nobody carried edges out."""
    asked = Operation.objects.filter(instance=machine, kind__in=AGAINST[edge.turn], requested_at__gte=edge.at)
    if asked.exists():
        return True
    began = machine.started_at if edge.turn is Turn.STOP else machine.provider_stopped_at
    return began is not None and began >= edge.at


def plan(schedule: PowerSchedule, machine: Instance, edge: Edge, *, now: datetime) -> PlannedAction:
    """What stands of an earlier edge is over with it."""
    earlier = PlannedAction.objects.filter(instance=machine, source=source_of(schedule), state__in=STANDING)
    call_off(actor=SCHEDULES, actions=earlier.select_related("team", "instance"), why="replaced", now=now)
    values = values_of(schedule, edge)
    with translation.override("en"):
        reason = edge_words(values)
    is_stop = edge.turn is Turn.STOP
    action = plan_action(
        actor=SCHEDULES,
        instance=machine,
        verb=PlannedActionVerb(edge.turn.value),
        due_at=edge.at,
        source=source_of(schedule),
        reason=reason,
        values=values,
        notice=timedelta(minutes=schedule.notice_minutes if is_stop else 0),
        now=now,
    )
    tell(action, now=now)
    return action


def values_of(schedule: PowerSchedule, edge: Edge) -> dict[str, object]:
    """JSON-ready. `until`: when a start would be undone; `edge`: which one it is of."""
    clock = clock_of(schedule)
    values: dict[str, object] = {
        "schedule": schedule.name,
        "edge": edge.at.isoformat(),
        "turn": edge.turn.value,
        "zone": str(clock.zone),
    }
    if edge.turn is Turn.STOP:
        return {**values, "accept_loss": schedule.accept_loss}
    stop = next((one for one in next_edges(clock, edge.at, 4) if one.turn is Turn.STOP), None)
    return {**values, "until": stop.at.isoformat()} if stop else values


def plan_stands(action: PlannedAction, now: datetime) -> bool:
    """Its schedule is as it was, covers the machine, and no later edge has come: after a downtime only the last one counts."""
    pk = int(action.source.removeprefix(f"{KIND}:"))
    schedule = PowerSchedule.objects.filter(pk=pk, enabled=True, removed_at=None).select_related("team").first()
    if schedule is None:
        return False
    edge = datetime.fromisoformat(action.values["edge"])
    last = last_edge(clock_of(schedule), now)
    if edge < schedule.since or (last is not None and edge < last.at):
        return False
    return any(machine.pk == action.instance_id for machine in machines_of(schedule))


def drop_plans(schedule: PowerSchedule, *, actor: Actor, now: datetime) -> int:
    """What it has planned and nobody took up yet. Turns to come are dealt with anew."""
    ScheduleEdge.objects.filter(schedule=schedule, at__gt=now).delete()
    standing = Q(source=source_of(schedule), state__in=STANDING)
    actions: Iterable[PlannedAction] = PlannedAction.objects.filter(standing).select_related("team", "instance")
    return call_off(actor=actor, actions=actions, why="lifted", now=now)
