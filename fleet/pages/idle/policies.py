"""The team's policies, one sentence each, with what each stopped and saved lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Q, Sum

from fleet.idle.policies.covering import stops
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.shown import policies_of
from fleet.idle.policies.words import sentence
from fleet.idle.shutdown.models import IdleSaving, IdleStop, IdleStopStage
from fleet.teams.models import Team

LATELY = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """Counts and money are of 30 days."""

    policy: IdlePolicy
    stopped: int
    called_off: int
    saved: dict[str, Decimal]

    @property
    def sentence(self) -> str:
        return sentence(self.policy)

    @property
    def acts(self) -> bool:
        return stops(self.policy)


def policy_lines(team: Team, *, now: datetime) -> list[PolicyLine]:
    """In the order in which they are asked; of a machine the first that covers it counts."""
    since = now - LATELY
    counts, saved = _counts(team, since), _saved(team, since)
    return [PolicyLine(row, *counts.get(row.pk, (0, 0)), saved.get(row.pk, {})) for row in policies_of(team)]


def _counts(team: Team, since: datetime) -> dict[int, tuple[int, int]]:
    """By policy: stops that were proved, and stops that were called off."""
    rows = IdleStop.objects.filter(team=team, policy__isnull=False, began_at__gt=since).values_list("policy")
    counted = rows.annotate(
        stopped=Count("pk", filter=Q(stage=IdleStopStage.STOPPED)),
        called_off=Count("pk", filter=Q(stage=IdleStopStage.CANCELLED)),
    )
    return {policy: (stopped, called_off) for policy, stopped, called_off in counted}


def _saved(team: Team, since: datetime) -> dict[int, dict[str, Decimal]]:
    rows = IdleSaving.objects.filter(team=team, since__gt=since, stop__policy__isnull=False)
    found: dict[int, dict[str, Decimal]] = {}
    for policy, currency, amount in rows.values_list("stop__policy", "currency").annotate(Sum("amount")):
        found.setdefault(policy, {})[currency] = amount
    return found
