"""Use-cases of right-sizing: look at a team's machines, and put a suggestion away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import F

from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.rightsizing.reading import candidates_of, machines_of, measured, rates_of
from fleet.costs.rightsizing.record import OVERWRITTEN, row_of
from fleet.costs.rightsizing.sizing.choosing import right_size
from fleet.costs.rightsizing.sizing.figures import Why
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

# What was not worth it may be at half as much again.
COMES_BACK_AT = Decimal("1.5")
BATCH = 1_000


def look_at_machines(*, team: Team, now: datetime) -> int:
    """Looks at every running machine anew. Returns how many there are; rows of machines that run no more are removed."""
    machines, rates = machines_of(team), rates_of(team, now=now)
    offers = candidates_of(team, rates, now=now)
    rows = []
    for some in batched(machines, BATCH):
        found = measured(some, rates, now=now)
        rows += [
            row_of(one, found[one.pk], right_size(found[one.pk], offers, now=now), currency=team.currency, now=now)
            for one in some
        ]
    _keep(team, rows, now)
    return len(rows)


def batched(machines: list[Instance], size: int) -> Iterator[list[Instance]]:
    """A month of hours of 40,000 GPUs is more than a database sorts in memory."""
    return (machines[start : start + size] for start in range(0, len(machines), size))


@transaction.atomic
def _keep(team: Team, rows: list[RightSizing], now: datetime) -> None:
    RightSizing.objects.bulk_create(
        rows, batch_size=BATCH, update_conflicts=True, unique_fields=["instance"], update_fields=OVERWRITTEN
    )
    kept = RightSizing.objects.filter(team=team)
    # What was put away is kept for a machine that is off for a while.
    kept.exclude(looked_at=now).filter(dismissed_at=None).delete()
    kept.exclude(looked_at=now).update(kind="", why=Why.OFF, saving_per_month=None, change={}, others=[], offer=None)
    _bring_back(team)


def _bring_back(team: Team) -> None:
    grown = RightSizing.objects.filter(team=team, saving_per_month__gte=F("dismissed_saving") * COMES_BACK_AT)
    grown.update(dismissed_at=None, dismissed_by=None, dismissed_reason="", dismissed_saving=None)


@transaction.atomic
def dismiss_suggestion(*, actor: Actor, row: RightSizing, reason: str, now: datetime) -> bool:
    """Put away with a reason until the saving has grown by half. False when it was put away already, or is a suggestion no more."""
    open_rows = RightSizing.objects.filter(pk=row.pk, dismissed_at=None, saving_per_month=row.saving_per_month).exclude(
        kind=""
    )
    done = open_rows.update(
        dismissed_at=now,
        dismissed_by=actor.user,
        dismissed_reason=reason[:300],
        dismissed_saving=row.saving_per_month,
    )
    if done:
        old = {"instance": row.instance.name, "saving": str(row.saving_per_month), "currency": row.currency}
        record(actor=actor, team=row.team, action="right_sizing.dismiss", target=row, old=old, new={"reason": reason})
    return bool(done)
