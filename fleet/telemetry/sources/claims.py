"""Which sources are read, how many at once, and in which order.

due ──claim──► in a shard ──read────────► next in one interval, or after a back-off
                   ├─ its time is spent ► due as before
                   └─ worker died ──────► the claim runs out, and the source is due again

A server that hangs costs its whole deadline. So a shard reads first what answered the last time, and only one of the others for certain;
one team's second source waits for the first one of every other team.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from fleet.telemetry.sources.ask import DEADLINE_SECONDS
from fleet.telemetry.sources.models import PrometheusSource
from fleet.telemetry.sources.read import BUDGET_SECONDS, read_source

SHARD_SOURCES = 20
# Longer than a shard may wait in the queue and then take.
CLAIM = timedelta(seconds=180)


@dataclass(frozen=True, slots=True)
class Shard:
    """What one task reads. `proven`: answered the last time; `doubtful`: failed then, or were never read."""

    claim: uuid.UUID
    proven: list[int]
    doubtful: list[int]


def claim_due(*, now: datetime, at_once: int) -> list[Shard]:
    """With the shards that are being read, at most `at_once`. Compare and set: of two that want a source one gets it."""
    shards: list[Shard] = []
    free = at_once - being_read(now=now)
    while len(shards) < free and (shard := _next_shard(now)):
        due = _due(now).filter(pk__in=[*shard.proven, *shard.doubtful])
        if due.update(claim=shard.claim, next_read_at=now + CLAIM):
            shards.append(shard)
    return shards


def being_read(*, now: datetime) -> int:
    """How many shards hold a claim that has not run out."""
    held = PrometheusSource.objects.filter(claim__isnull=False, next_read_at__gt=now)
    return held.values("claim").distinct().count()


def _due(now: datetime) -> QuerySet[PrometheusSource]:
    return PrometheusSource.objects.filter(enabled=True, next_read_at__lte=now)


def _next_shard(now: datetime) -> Shard | None:
    """None: nothing is due."""
    due = _in_turn(_due(now).order_by("next_read_at", "pk").only("team_id", "failures", "last_ok_at"))
    answers = [source for source in due if not source.failures and source.last_ok_at]
    proven = [source.pk for source in answers][:SHARD_SOURCES]
    doubtful = [source.pk for source in due if source not in answers][:SHARD_SOURCES]
    return Shard(uuid.uuid4(), proven, doubtful) if due else None


def _in_turn(sources: Iterable[PrometheusSource]) -> list[PrometheusSource]:
    """Every team's first, then every team's second, …"""
    before: Counter[int] = Counter()
    numbered = []
    for source in sources:
        numbered.append((before[source.team_id], source))
        before[source.team_id] += 1
    return [source for _number, source in sorted(numbered, key=lambda pair: pair[0])]


def read_shard(shard: Shard) -> int:
    """Returns how many were read before its time was spent; the others are due again."""
    ends = time.monotonic() + BUDGET_SECONDS
    # Where an answer that was on time came late, it takes so much longer.
    latest = ends + DEADLINE_SECONDS
    until = [ends] * len(shard.proven) + [latest] * bool(shard.doubtful) + [ends] * (len(shard.doubtful) - 1)
    read = 0
    for source_id, begins_before in zip([*shard.proven, *shard.doubtful], until, strict=True):
        if time.monotonic() < begins_before:
            read_source(source_id, claim=shard.claim, ends=ends)
            read += 1
    PrometheusSource.objects.filter(claim=shard.claim).update(claim=None, next_read_at=timezone.now())
    return read
