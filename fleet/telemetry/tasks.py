from __future__ import annotations

import uuid

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.telemetry.actions.report import expire_actions
from fleet.telemetry.packed.pack import pack_old_days
from fleet.telemetry.partitions import drop_old_partitions, ensure_partitions
from fleet.telemetry.retention import prune_records
from fleet.telemetry.rollups.sort import sort_closed_days
from fleet.telemetry.rollups.totals import count_states
from fleet.telemetry.scrape.plan import CLAIM, claim_due
from fleet.telemetry.scrape.run import scrape_claim
from fleet.telemetry.sources import claims as sources
from fleet.telemetry.store import current_store

# Less than the hour between two runs.
PACK_SECONDS = 2_700.0
# Less than the interval between two runs: a backlog must not hold a worker for long.
ROLL_UP_SECONDS = 45.0


@shared_task(name="telemetry.keep_partitions")
def keep_partitions() -> None:
    now = timezone.now()
    ensure_partitions(now=now)
    drop_old_partitions(now=now)


@shared_task(name="telemetry.prune_records")
def prune_old_records() -> None:
    prune_records(now=timezone.now())


@shared_task(name="telemetry.expire_actions")
def expire_asked_actions() -> int:
    return expire_actions(now=timezone.now())


@shared_task(name="telemetry.roll_up")
def roll_up_samples() -> None:
    current_store().roll_up(now=timezone.now(), budget_seconds=ROLL_UP_SECONDS)
    count_states()


# A day of a large fleet is many gigabytes; the broker hands a task out again after an hour.
@shared_task(name="telemetry.sort_closed_days", soft_time_limit=3_300, time_limit=3_400)
def sort_days() -> None:
    sort_closed_days(now=timezone.now())


@shared_task(name="telemetry.pack_old_days", soft_time_limit=3_300, time_limit=3_400)
def pack_days() -> None:
    """Before old days are dropped, and with them dropped at once where they are empty then."""
    pack_old_days(now=timezone.now(), budget_seconds=PACK_SECONDS)
    drop_old_partitions(now=timezone.now())


@shared_task(name="telemetry.dispatch_scrapes")
def dispatch_scrapes() -> int:
    claims = claim_due(now=timezone.now())
    for claim in claims:
        # Picked up later, its claim would run out while it is worked off.
        scrape_shard.apply_async((str(claim),), expires=CLAIM.total_seconds() / 3)
    return len(claims)


@shared_task(name="telemetry.scrape_shard", soft_time_limit=60, time_limit=75)
def scrape_shard(claim: str) -> int:
    return len(scrape_claim(uuid.UUID(claim)))


@shared_task(name="telemetry.dispatch_sources")
def dispatch_sources() -> int:
    shards = sources.claim_due(now=timezone.now(), at_once=settings.SOURCES_AT_ONCE)
    for shard in shards:
        arguments = (str(shard.claim), shard.proven, shard.doubtful)
        read_sources.apply_async(arguments, expires=sources.CLAIM.total_seconds() / 4)
    return len(shards)


@shared_task(name="telemetry.read_sources", soft_time_limit=120, time_limit=130)
def read_sources(claim: str, proven: list[int], doubtful: list[int]) -> int:
    return sources.read_shard(sources.Shard(uuid.UUID(claim), proven, doubtful))
