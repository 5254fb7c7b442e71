"""What a team thinks of a provider's support: the part of the ranking that no API tells."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.inventory.offers.models import ProviderScore, ScoreKind
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team


@transaction.atomic
def rate_support(*, actor: Actor, team: Team, provider: str, stars: int, note: str, now: datetime) -> ProviderScore:
    """`stars`: 1 to 5. One rating a provider and team; a new one takes its place."""
    Team.objects.select_for_update().get(pk=team.pk)
    about: dict[str, Any] = {"team": team, "provider": provider, "kind": ScoreKind.SUPPORT}
    old = ProviderScore.objects.filter(**about).first()
    score, _new = ProviderScore.objects.update_or_create(
        **about, defaults={"value": stars, "note": note, "by": actor.user, "at": now}
    )
    record(
        actor=actor,
        team=team,
        action="provider_score.rate",
        target=score,
        old={"stars": old.value, "note": old.note} if old else {},
        new={"provider": provider, "stars": stars, "note": note},
    )
    return score


@transaction.atomic
def drop_rating(*, actor: Actor, score: ProviderScore) -> None:
    record(actor=actor, team=score.team, action="provider_score.drop", target=score, old={"stars": score.value})
    score.delete()
