"""The sandbox's idle policies: one that stops, for a project in which nothing is worth keeping, and one that only tells of all the rest."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.policies.models import IdleAction
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.saving import save_policy
from fleet.teams.audit import Actor
from fleet.teams.models import Project, Team

PLAYGROUND = "playground"


def write_policies(*, actor: Actor, team: Team, now: datetime) -> None:
    playground = Project.objects.get(team=team, slug=PLAYGROUND)
    notebooks = PolicySaid(
        name="Forgotten notebooks", project=playground, window_minutes=30, action=IdleAction.STOP, grace_minutes=10, accept_loss=True
    )  # fmt: skip
    for said in (notebooks, PolicySaid(name="Everything else")):
        save_policy(actor=actor, team=team, said=said, now=now, confirmed=True)
