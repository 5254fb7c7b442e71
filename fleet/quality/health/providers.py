"""How machines of each provider fared, added up per team, and the score that the ranking of offers takes from it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, FloatField, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from fleet.inventory.accounts import MANUAL
from fleet.inventory.offers.models import ProviderScore, ScoreKind
from fleet.quality.health.score import FAULTS, HOURS_A_DAY, Sums, stars
from fleet.quality.models import HealthDay
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

WINDOW = timedelta(days=90)
BY = Actor.system("health of machines")
BY_PROVIDER = ("instance__team", "provider")


class Fared(NamedTuple):
    """One provider in one team, over WINDOW."""

    team_id: int
    provider: str
    machines: int
    sums: Sums

    @property
    def stars(self) -> int | None:
        return stars(self.sums)


def fared(*, now: datetime, team_ids: Collection[int] | None = None) -> list[Fared]:
    """By team and provider. One query. Machines that people typed are of no provider that could be ranked."""
    days = HealthDay.objects.filter(day__gt=now.date() - WINDOW).exclude(provider=MANUAL)
    if team_ids is not None:
        days = days.filter(instance__team__in=team_ids)
    sums = days.values(*BY_PROVIDER).annotate(
        machines=Count("instance", distinct=True),
        hours=Sum("gpu_hours"),
        faults=Sum(Cast(KeyTextTransform(FAULTS, "counts"), FloatField())),
        throttled=Sum("throttled_seconds"),
        lost=Sum("lost_seconds"),
    )
    rows = sums.order_by(*BY_PROVIDER).values_list(*BY_PROVIDER, "machines", "hours", "faults", "throttled", "lost")
    return [
        Fared(team, provider, machines, Sums(hours / HOURS_A_DAY, round(found or 0), throttled, lost))
        for team, provider, machines, hours, found, throttled, lost in rows
    ]


def score_providers(*, now: datetime) -> int:
    """Writes what changed, with a line in the audit log; a score for which too little is left goes. Returns how many changed."""
    found = {(one.team_id, one.provider): one.stars for one in fared(now=now)}
    rows = {(row.team_id, row.provider): row for row in ProviderScore.objects.filter(kind=ScoreKind.HEALTH)}
    teams = Team.objects.in_bulk({team_id for team_id, _provider in (*found, *rows)})
    return sum(_write(teams[key[0]], key[1], found.get(key), rows.get(key), now) for key in sorted({*found, *rows}))


@transaction.atomic
def _write(team: Team, provider: str, value: int | None, row: ProviderScore | None, now: datetime) -> bool:
    old = row.value if row else None
    if value == old:
        return False
    if value is None:
        ProviderScore.objects.filter(team=team, provider=provider, kind=ScoreKind.HEALTH).delete()
    else:
        row, _new = ProviderScore.objects.update_or_create(
            team=team, provider=provider, kind=ScoreKind.HEALTH, defaults={"value": value, "by": None, "at": now}
        )
    record(
        actor=BY,
        team=team,
        action="provider_score.health",
        target=row,
        old={"stars": old} if old is not None else {},
        new={"provider": provider, "stars": value},
    )
    return True
