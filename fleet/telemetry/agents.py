"""What people do with agents: how often they read, whether they pause, whether they may report, which machine they are on."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.machines import retire_machine
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.telemetry.matching import candidates
from fleet.telemetry.models import Agent

INTERVAL_CHOICES_SECONDS = (1, 2, 5, 10, 30, 60)
MIN_REPORT_SECONDS = 10


class AgentError(ValueError):
    """What was asked cannot be done; the text is for the person who asked."""


@transaction.atomic
def change_interval(*, actor: Actor, agent: Agent, interval_seconds: int) -> None:
    """How often the agent reads. It learns of it with its next answer. Raises AgentError."""
    if interval_seconds not in INTERVAL_CHOICES_SECONDS:
        choices = ", ".join(str(seconds) for seconds in INTERVAL_CHOICES_SECONDS)
        raise AgentError(_("Choose one of these intervals, in seconds: %(choices)s.") % {"choices": choices})
    before = agent.interval_seconds
    report_seconds = max(MIN_REPORT_SECONDS, interval_seconds)
    changed = Agent.objects.filter(pk=agent.pk, interval_seconds=before).update(
        interval_seconds=interval_seconds, report_seconds=report_seconds
    )
    if changed and before != interval_seconds:
        _record(
            actor, agent, "agent.interval", old={"interval_seconds": before}, new={"interval_seconds": interval_seconds}
        )


@transaction.atomic
def pause_agent(*, actor: Actor, agent: Agent, paused: bool) -> bool:
    """A paused agent lets go of the driver (for a GPU reset, or to change MIG) and only says that it lives. False: it was so already."""
    changed = Agent.objects.filter(pk=agent.pk, paused=not paused).update(paused=paused)
    if changed:
        _record(actor, agent, "agent.pause" if paused else "agent.resume")
    return bool(changed)


@transaction.atomic
def revoke_agent(*, actor: Actor, agent: Agent) -> bool:
    """Its token is refused within seconds; what it reported stays. False: it was revoked already."""
    changed = Agent.objects.filter(pk=agent.pk, revoked_at=None).update(revoked_at=timezone.now())
    if changed:
        _record(actor, agent, "agent.revoke", new={"prefix": agent.prefix})
    return bool(changed)


@transaction.atomic
def keep_apart(*, actor: Actor, agent: Agent) -> bool:
    """Settle a conflict: the machine is one of its own, whatever ids it found. False: there was none."""
    changed = Agent.objects.filter(pk=agent.pk).exclude(match_conflict="").update(match_conflict="")
    if changed:
        _record(actor, agent, "agent.keep_apart", old={"conflict": agent.match_conflict})
    return bool(changed)


@transaction.atomic
def move_agent(*, actor: Actor, agent: Agent, instance: Instance) -> None:
    """Settle a conflict: the agent is on this listed machine. An agent that reported for it before is out. Raises AgentError.

    Readings stay where they are: what the machine of its own has measured is never mixed into the other's.
    """
    agent = Agent.objects.select_for_update(of=("self",)).select_related("instance__team").get(pk=agent.pk)
    if not agent.match_conflict:
        raise AgentError(_("There is no conflict to settle any more."))
    if instance not in candidates(agent):
        raise AgentError(_("The ids that the agent found do not name this machine."))
    own = agent.instance
    for former in Agent.objects.filter(instance=instance):
        _record(actor, former, "agent.replaced", old={"prefix": former.prefix})
        former.delete()
    Agent.objects.filter(pk=agent.pk).update(instance=instance, match_conflict="")
    retire_machine(actor=actor, instance=own)
    agent.instance = instance
    _record(actor, agent, "agent.move", old={"instance": own.name}, new={"instance": instance.name})


def _record(
    actor: Actor,
    agent: Agent,
    action: str,
    *,
    old: dict[str, object] | None = None,
    new: dict[str, object] | None = None,
) -> None:
    record(actor=actor, team=agent.instance.team, action=action, target=agent.instance, old=old, new=new)
