"""How an action went: what its agent says, and what is said for agents that say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from fleet.teams.audit import Actor, record
from fleet.telemetry.actions.ask import OPEN
from fleet.telemetry.actions.models import AgentAction, AgentActionState
from fleet.telemetry.actions.signals import announce_end

# An action that began may take the longest time-out there is, an agent that restarts, and an outage.
MOST_RUNNING = timedelta(minutes=75)


class UnknownActionError(ValueError):
    """No action of this machine has that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One report, cleaned. `state`: running, done or failed."""

    action_id: int
    state: str
    result: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""


@transaction.atomic
def take_report(*, instance_id: int, told: Told, now: datetime) -> bool:
    """Whether it changed anything: told twice, or after the action was given up, it does not. Raises UnknownActionError."""
    action = (
        AgentAction.objects.select_for_update(of=("self",))
        .select_related("instance__team")
        .filter(pk=told.action_id, instance_id=instance_id)
        .first()
    )
    if action is None:
        raise UnknownActionError
    if action.state not in OPEN or told.state == action.state:
        return False
    action.state = told.state
    action.started_at = action.started_at or now
    action.detail = told.detail
    if told.state != AgentActionState.RUNNING:
        action.ended_at, action.result = now, dict(told.result)
        _end(action, Actor(None, f"agent on {action.instance.name}", "agent"))
    action.save(update_fields=["state", "started_at", "ended_at", "result", "detail"])
    return True


def expire_actions(*, now: datetime) -> int:
    """Give up what was not begun in time, or began long ago and was never heard of again. Returns how many."""
    late = Q(state=AgentActionState.ASKED, expires_at__lte=now) | Q(
        state=AgentActionState.RUNNING, started_at__lte=now - MOST_RUNNING
    )
    return sum(_give_up(pk, late, now) for pk in AgentAction.objects.filter(late).values_list("pk", flat=True))


@transaction.atomic
def _give_up(pk: int, late: Q, now: datetime) -> bool:
    if not AgentAction.objects.filter(late, pk=pk).update(state=AgentActionState.LOST, ended_at=now):
        return False
    _end(AgentAction.objects.select_related("instance__team").get(pk=pk), Actor.system("agent_actions"))
    return True


def _end(action: AgentAction, actor: Actor) -> None:
    said = {"action": action.name, "state": action.state, **({"detail": action.detail} if action.detail else {})}
    record(actor=actor, team=action.instance.team, action="agent.acted", target=action.instance, new=said)
    announce_end(action)
