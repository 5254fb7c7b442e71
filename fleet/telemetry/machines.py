"""Machines that no provider lists: their own agent is the only one that knows them."""

from __future__ import annotations

from datetime import datetime

from fleet.inventory.machines import TypedMachine, add_machine
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor
from fleet.teams.models import Project, Team

NO_NAME = "unnamed"


def add_own_machine(*, actor: Actor, team: Team, hostname: str, project: Project | None, now: datetime) -> Instance:
    """A machine of the team's account for machines that are kept by hand, named as it calls itself."""
    typed = TypedMachine(name=hostname or NO_NAME, currency=team.currency)
    return add_machine(actor=actor, team=team, typed=typed, project=project, now=now)
