"""Counting a fleet's GPUs together, behind their rollups: forward, and again where late samples changed a row.

It follows the rollups of GPUs at its own pace, from the oldest row that is kept, so that an installation that had none of this before
gets its months as well. Counted twice, a bucket has the same rows.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.db.models import Min

from fleet.inventory.models import GPU, Instance
from fleet.telemetry.partitions import FLEET, ensure_partitions
from fleet.telemetry.rollups import fleet_statements as statements
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, ROLLUPS, Resolution
from fleet.telemetry.rollups.fleet_models import FleetRollupProgress
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, GpuRollupHour, RollupProgress
from fleet.telemetry.rollups.signals import hours_rolled_again

# So many rows of GPUs in one transaction, at most a day of buckets.
CHUNK_ROWS = 50_000
LONGEST_CHUNK = timedelta(days=1)


def begin_fleet(*, now: datetime) -> None:
    """The first run ever starts at the oldest rollup that is kept; every run makes sure of the partitions it may write to."""
    for resolution in ROLLUPS:
        if not FleetRollupProgress.objects.filter(resolution=resolution.name).exists():
            start = _oldest_row(resolution) or RollupProgress.objects.get(resolution=resolution.name).rolled_until
            FleetRollupProgress.objects.get_or_create(resolution=resolution.name, defaults={"rolled_until": start})
    oldest = FleetRollupProgress.objects.order_by("rolled_until").values_list("rolled_until", flat=True)[0]
    ensure_partitions(now=now, since=oldest, tables=FLEET)


def _oldest_row(resolution: Resolution) -> datetime | None:
    model = GpuRollupFiveMinutes if resolution == FIVE_MINUTES else GpuRollupHour
    oldest: datetime | None = model.objects.aggregate(oldest=Min("bucket_at"))["oldest"]
    return oldest


def make_groups() -> None:
    """Groups for the GPUs that have none yet; those of before stay."""
    with connection.cursor() as cursor:
        cursor.execute(statements.make_groups())


def step_fleet(resolution: Resolution) -> bool:
    """Count the next buckets that the rollups of GPUs have passed. False: it has caught up with them."""
    with transaction.atomic():
        progress = FleetRollupProgress.objects.select_for_update().get(resolution=resolution.name)
        since = progress.rolled_until.astimezone(UTC)
        rolled_until = RollupProgress.objects.get(resolution=resolution.name).rolled_until
        until = min(rolled_until, since + _chunk(resolution))
        if until <= since:
            return False
        make_groups()
        _count(resolution, since, until)
        progress.rolled_until = until
        progress.save()
    return True


def _chunk(resolution: Resolution) -> timedelta:
    buckets = max(1, CHUNK_ROWS // max(1, GPU.objects.count()))
    return min(buckets * resolution.width, LONGEST_CHUNK)


def recount(resolution: Resolution, bucket_ats: Collection[datetime], instance_ids: Collection[int]) -> None:
    """Again, within the caller's transaction, for the teams of these machines. What lies ahead is counted when its turn comes."""
    progress = FleetRollupProgress.objects.select_for_update().filter(resolution=resolution.name).first()
    teams = sorted(set(Instance.objects.filter(pk__in=instance_ids).values_list("team_id", flat=True)))
    for since in sorted(bucket_ats):
        if progress and since < progress.rolled_until:
            _count(resolution, since, since + resolution.width, team_ids=teams)
    if resolution == HOUR and bucket_ats:
        hours_rolled_again.send(sender=Resolution, since=min(bucket_ats), instance_ids=sorted(instance_ids))


def _count(resolution: Resolution, since: datetime, until: datetime, *, team_ids: list[int] | None = None) -> None:
    some = team_ids is not None
    parameters = {"since": since, "until": until, "team_ids": team_ids}
    with connection.cursor() as cursor:
        cursor.execute(statements.forget(resolution.name, some=some), parameters)
        cursor.execute(statements.count_groups(resolution.name, some=some), parameters)
