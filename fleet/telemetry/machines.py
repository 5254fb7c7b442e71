"""Machines that no provider lists: their own agent is the only one that knows them."""

from __future__ import annotations

import uuid
from datetime import datetime

from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.base import InstanceState
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team


def add_own_machine(*, actor: Actor, team: Team, hostname: str, project: Project | None, now: datetime) -> Instance:
    """A machine of the team's account for machines that are kept by hand, named as it calls itself."""
    account, _ = ProviderAccount.objects.get_or_create(
        team=team, kind="manual", name="By hand", defaults={"currency": team.currency}
    )
    instance = Instance.objects.create(
        team=team,
        account=account,
        external_id=uuid.uuid4().hex,
        name=hostname or "unnamed",
        state=InstanceState.RUNNING,
        raw_state="running",
        managed=True,
        project=project,
        started_at=now,
        state_since=now,
    )
    record(actor=actor, team=team, action="instance.add", target=instance, new={"name": instance.name})
    return instance
