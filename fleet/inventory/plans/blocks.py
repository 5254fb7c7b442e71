"""Launch blocks: written and lifted by the rooms above. One is in force per source."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from fleet.inventory.models import ProviderAccount
from fleet.inventory.plans.models import LaunchBlock
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team, User


def block_launches(
    *,
    actor: Actor,
    team: Team,
    source: str,
    reason: str,
    now: datetime,
    account: ProviderAccount | None = None,
    project: Project | None = None,
    owner: User | None = None,
    values: Mapping[str, Any] | None = None,
) -> LaunchBlock:
    """The block of `source` that is in force; it is written where there is none. Two that write it at once get the same."""
    known = LaunchBlock.objects.filter(team=team, source=source, lifted_at=None)
    if (found := known.first()) is not None:
        return found
    block = LaunchBlock(
        team=team,
        account=account,
        project=project,
        owner=owner,
        source=source,
        reason=reason[:300],
        values=dict(values or {}),
        created_at=now,
    )
    try:
        with transaction.atomic():
            block.save(force_insert=True)
            record(actor=actor, team=team, action="launch_block.write", target=block, new={"reason": block.reason})
    except IntegrityError:
        return known.get()
    return block


@transaction.atomic
def lift_block(*, actor: Actor, block: LaunchBlock, now: datetime, reason: str = "") -> bool:
    """`reason`: of the person who lifts it; none where what it was written for is over. False when it was lifted already."""
    in_force = LaunchBlock.objects.filter(pk=block.pk, lifted_at=None)
    if not in_force.update(lifted_at=now, lifted_reason=reason[:300], lifted_by=actor.user):
        return False
    told = {"reason": reason} if reason else {}
    record(
        actor=actor, team=block.team, action="launch_block.lift", target=block, old={"reason": block.reason}, new=told
    )
    return True


def lift_blocks_of(*, actor: Actor, team: Team, source: str, now: datetime) -> bool:
    """What `source` was written for is over. False where none was in force."""
    block = LaunchBlock.objects.select_related("team").filter(team=team, source=source, lifted_at=None).first()
    return block is not None and lift_block(actor=actor, block=block, now=now)
