"""Writes the ends of machines as planned acts, well before they come, and calls off what is not meant any more: extended, switched off, started anew."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from datetime import datetime

from django.db import transaction
from django.utils import translation

from fleet.alerts.planned_acts import call_off, tell
from fleet.idle.leases.ends import DELETE, SOURCES, End, ends_of
from fleet.idle.leases.words import WORDS
from fleet.inventory.models import Instance
from fleet.inventory.plans.actions import BY_ITSELF, plan_action
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionState
from fleet.teams.audit import Actor

logger = logging.getLogger(__name__)
LEASES = Actor.system("leases")
Known = tuple[int, str, datetime]


def plan_ends(*, now: datetime) -> int:
    """Returns how many were planned. One that cannot be planned keeps no other from it."""
    rows = Instance.objects.filter(gone_at=None, managed=True, account__disconnected_at=None)
    machines = {machine.pk: machine for machine in rows.select_related("account", "team", "owner", "project")}
    ends = ends_of(list(machines.values()))
    drop_past(ends, now=now)
    coming = {pk: end for pk, end in ends.items() if begins_at(end) <= now}
    settled = set(settled_ends(coming))
    fresh = {pk: end for pk, end in coming.items() if (pk, end.source, end.ends_at) not in settled}
    for pk, end in fresh.items():
        try:
            plan_end(machines[pk], end, now=now)
        except Exception:
            logger.exception("The end of the machine %d could not be planned", pk)
    return len(fresh)


def begins_at(end: End) -> datetime:
    """When it is written and told. A deletion is written when its time is over, and waits its whole notice from then."""
    return end.ends_at if end.source == DELETE else end.ends_at - end.notice


def settled_ends(machines: Collection[int]) -> Iterator[Known]:
    """Those that stand, were done, or that a person called off."""
    rows = PlannedAction.objects.filter(instance__in=machines, source__in=SOURCES)
    rows = rows.exclude(state=PlannedActionState.CANCELLED, ended_reason__in=BY_ITSELF)
    for pk, source, values in rows.values_list("instance", "source", "values"):
        yield pk, source, datetime.fromisoformat(values["ends_at"])


@transaction.atomic
def plan_end(machine: Instance, end: End, *, now: datetime) -> PlannedAction:
    values = {**end.values, "ends_at": end.ends_at.isoformat()}
    with translation.override("en"):
        reason = WORDS[end.source](values)
    action = plan_action(
        actor=LEASES,
        instance=machine,
        verb=end.verb,
        due_at=max(end.ends_at, now + end.notice),
        source=end.source,
        reason=reason,
        values=values,
        notice=end.notice,
        now=now,
    )
    tell(action, now=now)
    return action


def drop_past(ends: dict[int, End], *, now: datetime) -> int:
    """What stands for an end that is not the machine's any more."""
    standing = PlannedAction.objects.filter(source__in=SOURCES, state__in=STANDING).select_related("team", "instance")
    past = [action for action in standing if not is_of(action, ends.get(action.instance_id))]
    return call_off(actor=LEASES, actions=past, why="lifted", now=now)


def plan_stands(action: PlannedAction, _now: datetime) -> bool:
    machine = Instance.objects.select_related("account", "team", "project").get(pk=action.instance_id)
    return is_of(action, ends_of([machine]).get(machine.pk))


def is_of(action: PlannedAction, end: End | None) -> bool:
    """Also that data may be lost is of the plan: taken back in the policy, it is taken back here."""
    if end is None or (end.source, end.verb) != (action.source, action.verb):
        return False
    if bool(end.values.get("accept_loss")) is not bool(action.values.get("accept_loss")):
        return False
    return end.ends_at == datetime.fromisoformat(action.values["ends_at"])
