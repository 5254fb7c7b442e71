"""Rolling samples up: forward, bucket by bucket, and again where late samples came.

Every step is one transaction that a crash undoes and the next run repeats; one step touches at most CHUNK_GPU_SECONDS of samples, however
long the job was down. Two workers take turns: who does not get the lock has nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from fleet.telemetry.pace import DEFAULT_INTERVAL_SECONDS
from fleet.telemetry.partitions import SAMPLES, ensure_partitions, existing_partitions
from fleet.telemetry.readings import LATE_SECONDS
from fleet.telemetry.rollups import statements
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, ROLLUPS, Resolution
from fleet.telemetry.rollups.fleet import begin_fleet, make_groups, recount, step_fleet
from fleet.telemetry.rollups.models import LateBucket, RollupProgress

# After a bucket's end. Samples that come later than LATE_SECONDS name their bucket in rollup_late; what comes before has this long to commit.
GRACE = timedelta(seconds=LATE_SECONDS + 90)
# 12,000 GPUs for five minutes, 1,000 for an hour.
CHUNK_GPU_SECONDS = 3_600_000
# So many late (machine, bucket) at a time: a fleet that was cut off is caught up in steps, too.
LATE_AT_ONCE = {FIVE_MINUTES: 1_000, HOUR: 100}
FORWARD_LOCK = 7_305_412_042
LATE_LOCK = 7_305_412_043
# Thousands of small sorts; compiling the statement costs more than it saves.
TUNING = "SET LOCAL jit = off; SET LOCAL work_mem = '128MB'"
PAST_ANY_ID = 2**62


@dataclass(slots=True)
class Rolled:
    """What one run did: finished steps, buckets of machines that were rolled again, and steps of counting the fleet together."""

    steps: int = 0
    late: int = 0
    fleet: int = 0


def roll_up(*, now: datetime, budget_seconds: float | None = None) -> Rolled:
    """Roll every bucket that is over and every late one; stop between two steps once the budget is spent, and go on in the next run."""
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    rolled = Rolled()
    _begin(now)
    for done in _steps(now):
        rolled.steps += done.steps
        rolled.late += done.late
        rolled.fleet += done.fleet
        if ends is not None and time.monotonic() >= ends:
            break
    return rolled


def _steps(now: datetime) -> Iterator[Rolled]:
    for resolution in ROLLUPS:
        while _step_forward(resolution, now):
            yield Rolled(steps=1)
        while late := _roll_late(resolution):
            yield Rolled(late=late)
    # Last: an installation that gets its months counted must not wait for its hours meanwhile.
    for resolution in ROLLUPS:
        while step_fleet(resolution):
            yield Rolled(fleet=1)


def _begin(now: datetime) -> None:
    """The first run ever starts at the oldest sample; every run makes sure of the partitions it may write to."""
    for resolution in ROLLUPS:
        if not RollupProgress.objects.filter(resolution=resolution.name).exists():
            start = resolution.floor(_oldest_sample() or now)
            RollupProgress.objects.get_or_create(resolution=resolution.name, defaults={"rolled_until": start})
    oldest = RollupProgress.objects.order_by("rolled_until").values_list("rolled_until", flat=True)[0]
    ensure_partitions(now=now, since=oldest)
    begin_fleet(now=now)


def _oldest_sample() -> datetime | None:
    """Reads one day per table: the oldest that holds anything."""
    found: list[datetime] = []
    for table in SAMPLES:
        days = sorted((one for one in existing_partitions() if one.table == table), key=lambda one: one.first)
        moments = (_minimum(one.name) for one in days)
        found += [moment for moment in [next(filter(None, moments), None)] if moment]
    return min(found, default=None)


def _minimum(partition: str) -> datetime | None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT min(sampled_at) FROM {}").format(sql.Identifier(partition)))
        row: tuple[datetime | None] = cursor.fetchone()
    return row[0]


def _step_forward(resolution: Resolution, now: datetime) -> bool:
    """Roll one chunk of the next bucket. False: nothing is due, or another worker is at it."""
    with transaction.atomic():
        if not try_lock(FORWARD_LOCK):
            return False
        progress = RollupProgress.objects.get(resolution=resolution.name)
        since = progress.rolled_until
        if since + resolution.width + GRACE > now:
            return False
        past_last_id = _chunk_end(resolution, progress.next_gpu_id)
        tune()
        make_groups()
        _write_gpus(resolution, since, first_id=progress.next_gpu_id, past_last_id=past_last_id or PAST_ANY_ID)
        if past_last_id is None:
            _write_hosts(resolution, since)
            progress.rolled_until = since + resolution.width
        progress.next_gpu_id = past_last_id or 0
        progress.save()
    return True


def _chunk_end(resolution: Resolution, first_id: int) -> int | None:
    """The id at which the next chunk begins; None: this one is the last."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM fleet_gpu WHERE id >= %s ORDER BY id OFFSET %s LIMIT 1",
            [first_id, CHUNK_GPU_SECONDS // resolution.seconds],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def _roll_late(resolution: Resolution) -> int:
    """Roll the oldest late buckets again that are behind us; those ahead wait until we have passed. Returns how many."""
    with transaction.atomic():
        if not try_lock(LATE_LOCK):
            return 0
        taken = _take_late(resolution)
        by_start: dict[datetime, set[int]] = {}
        for instance_id, bucket_at in taken:
            by_start.setdefault(bucket_at, set()).add(instance_id)
        tune()
        for since, instance_ids in sorted(by_start.items()):
            _write_gpus(resolution, since, instance_ids=sorted(instance_ids))
            _write_hosts(resolution, since, instance_ids=sorted(instance_ids))
        recount(resolution, by_start, {instance_id for instance_id, _bucket_at in taken})
        if resolution == FIVE_MINUTES:
            _pass_on(by_start)
    return len(taken)


_TAKE_LATE = """
DELETE FROM rollup_late WHERE id IN (
    SELECT late.id FROM rollup_late late JOIN (
        SELECT DISTINCT bucket_at, instance_id FROM rollup_late
        WHERE bucket_seconds = %(width)s AND bucket_at < (SELECT rolled_until FROM rollup_progress WHERE resolution = %(name)s)
        ORDER BY bucket_at, instance_id LIMIT %(most)s
    ) due USING (bucket_at, instance_id) WHERE late.bucket_seconds = %(width)s
) RETURNING instance_id, bucket_at
"""


def _take_late(resolution: Resolution) -> set[tuple[int, datetime]]:
    parameters: dict[str, int | str] = {
        "width": resolution.seconds,
        "name": resolution.name,
        "most": LATE_AT_ONCE[resolution],
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_LATE, parameters)
        return {(instance_id, bucket_at.astimezone(UTC)) for instance_id, bucket_at in cursor.fetchall()}


def _pass_on(by_start: dict[datetime, set[int]]) -> None:
    """The hours of these buckets are late too."""
    hours = {(pk, HOUR.floor(since)) for since, instance_ids in by_start.items() for pk in instance_ids}
    LateBucket.objects.bulk_create(
        LateBucket(instance_id=pk, bucket_at=hour, bucket_seconds=HOUR.seconds) for pk, hour in sorted(hours)
    )


def _write_gpus(resolution: Resolution, since: datetime, **which: Any) -> None:
    _write(
        statements.roll_gpus(f"gpu_rollup_{resolution.name}", some="instance_ids" in which), resolution, since, which
    )


def _write_hosts(resolution: Resolution, since: datetime, **which: Any) -> None:
    _write(statements.roll_hosts(f"host_rollup_{resolution.name}", some=bool(which)), resolution, since, which)


def _write(statement: sql.Composed, resolution: Resolution, since: datetime, which: dict[str, Any]) -> None:
    parameters = {
        "since": since,
        "until": since + resolution.width,
        "width": resolution.seconds,
        "interval": DEFAULT_INTERVAL_SECONDS,
        **which,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def tune() -> None:
    with connection.cursor() as cursor:
        cursor.execute(TUNING)


def try_lock(key: int) -> bool:
    """Until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
        return bool(cursor.fetchone() == (True,))
