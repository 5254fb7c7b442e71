"""Asking a machine's agent for one of its fixed actions. It takes it up with its next heartbeat, or never."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.telemetry.actions.models import AgentAction, AgentActionState
from fleet.telemetry.actions.options import ActionError, checked_options
from fleet.telemetry.models import Agent

__all__ = ["OPEN", "ActionError", "ActionOpenError", "ask_action", "offers_action", "open_action"]

OPEN = (AgentActionState.ASKED, AgentActionState.RUNNING)
# Four heartbeats: one that says nothing for so long is not asked.
HEARD_WITHIN = timedelta(seconds=75)


class ActionOpenError(ActionError):
    """One of the same kind is under way on that machine: `action`."""

    def __init__(self, action: AgentAction) -> None:
        super().__init__(_("This was asked for already and has not ended yet."))
        self.action = action


def offers_action(instance: Instance, name: str, *, now: datetime | None = None) -> bool:
    """Whether the machine's agent is there and said with its last heartbeat that it would do this."""
    return _offering(instance, name, now or timezone.now()).exists()


def open_action(instance: Instance, name: str) -> AgentAction | None:
    return AgentAction.objects.filter(instance=instance, name=name, state__in=OPEN).order_by("pk").first()


@transaction.atomic
def ask_action(
    *, actor: Actor, instance: Instance, name: str, options: Mapping[str, object], now: datetime, lifetime: timedelta
) -> AgentAction:
    """The action, open. One that has not begun after `lifetime` is lost and never begins. Raises ActionError, ActionOpenError."""
    told = checked_options(name, options)
    # The agent's row is what two who ask at once wait for each other at.
    if not _offering(instance, name, now).select_for_update(of=("self",)).exists():
        raise ActionError(_("The agent of this machine is silent, or does not offer this."))
    already = open_action(instance, name)
    if already is not None:
        raise ActionOpenError(already)
    action = AgentAction.objects.create(
        instance=instance, name=name, options=told, asked_at=now, asked_by=actor.user, expires_at=now + lifetime
    )
    record(actor=actor, team=instance.team, action="agent.ask", target=instance, new={"action": name, **told})
    return action


def _offering(instance: Instance, name: str, now: datetime) -> QuerySet[Agent]:
    return Agent.objects.filter(
        instance=instance, revoked_at=None, heartbeat_at__gte=now - HEARD_WITHIN, actions__contains=[name]
    )
