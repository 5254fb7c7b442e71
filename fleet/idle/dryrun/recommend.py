"""Keeps with a policy the window that history recommends. What changed meanwhile is not overwritten: it is reckoned again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.idle.dryrun.advice import Advice, Lesson, advise
from fleet.idle.dryrun.dry_run import Ground, ground_of
from fleet.idle.dryrun.plain import plain
from fleet.idle.policies.models import IdlePolicy
from fleet.teams.audit import Actor, record

RECOMMENDER = Actor.system("idle.recommend")
LOOKED_AT_DAYS = 30
NO_WINDOW = timedelta()


@dataclass(frozen=True, slots=True)
class Kept:
    """`is_new`: it is kept; else the policy was changed or removed while it was reckoned."""

    values: dict[str, Any]
    is_new: bool


def advice_on(ground: Ground) -> Advice:
    return advise(ground.histories, Lesson(ground.terms(NO_WINDOW), ground.cost))


def recommend(*, policy: IdlePolicy, now: datetime, actor: Actor = RECOMMENDER, days: int = LOOKED_AT_DAYS) -> Kept:
    """Of a policy as it stands; `policy` is brought up to date."""
    ground = ground_of(policy=policy, days=days, now=now)
    values = plain(advice_on(ground), cost=ground.cost, days=days)
    return Kept(values, keep_recommendation(actor=actor, policy=policy, values=values, now=now))


def keep_recommendation(*, actor: Actor, policy: IdlePolicy, values: dict[str, Any], now: datetime) -> bool:
    """False: this is not the policy any more that was looked at. A window that stays as it was leaves no audit row."""
    before = policy.recommended_minutes
    with transaction.atomic():
        rows = IdlePolicy.objects.filter(pk=policy.pk, revision=policy.revision, removed_at=None)
        minutes = values["minutes"]
        if not rows.update(recommended_minutes=minutes, recommended_at=now, recommendation=values):
            return False
        if minutes != before or policy.recommended_at is None:
            record(
                actor=actor,
                team=policy.team,
                action="idle_policy.recommend",
                target=policy,
                old={"recommended_minutes": before},
                new={"recommended_minutes": minutes},
            )
    policy.recommended_minutes, policy.recommended_at, policy.recommendation = minutes, now, values
    return True


def recommend_all(*, now: datetime) -> int:
    """Of every policy that stands, also those that are switched off: they are looked at before they are switched on. Returns how many."""
    policies = IdlePolicy.objects.filter(removed_at=None).select_related("team").order_by("pk")
    return sum(recommend(policy=policy, now=now).is_new for policy in policies)
