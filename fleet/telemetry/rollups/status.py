"""What the telemetry tables hold, how large they are, and how far the rollups have come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Avg, Sum

from fleet.telemetry.packed.models import GpuHour, HostHour
from fleet.telemetry.packed.pack import days_to_pack
from fleet.telemetry.partitions import ALL, SAMPLES, existing_partitions, holds_rows, partitions_past_keeping
from fleet.telemetry.rollups.columns import FIVE_MINUTES, ROLLUPS
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, HostRollupFiveMinutes, LateBucket, RollupProgress

COVERAGE_OF = timedelta(hours=24)
# They are dropped every hour.
OVERDUE_AFTER = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """`rows` is the planner's estimate, None before the first ANALYZE; bytes count indexes too."""

    name: str
    begins_at: datetime
    ends_at: datetime
    rows: int | None
    bytes: int


@dataclass(frozen=True, slots=True)
class TableStatus:
    name: str
    kept_days: int
    partitions: list[PartitionStatus]

    @property
    def bytes(self) -> int:
        return sum(partition.bytes for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class RollupStatus:
    """`lag_seconds`: since the end of the last rolled bucket; late buckets wait to be rolled again. None: nothing was ever rolled."""

    resolution: str
    rolled_until: datetime | None
    lag_seconds: float | None
    late_buckets: int


@dataclass(frozen=True, slots=True)
class HistoryStatus:
    """`kept_days` 0: no history is made. `waiting`: days that have to be packed before they are dropped. Packed samples in all, by kind."""

    kept_days: int
    waiting: list[str]
    gpu_samples: int
    host_samples: int


@dataclass(frozen=True, slots=True)
class TelemetryStatus:
    """`…_coverage`: share (0-1) of the expected samples that came in the last 24 h, None without rollups."""

    at: datetime
    tables: list[TableStatus]
    rollups: list[RollupStatus]
    history: HistoryStatus
    # Which store readings lie in, and days of samples that should have been dropped and are still there.
    engine: str
    overdue: list[str]
    gpu_coverage: float | None
    host_coverage: float | None


def telemetry_status(*, now: datetime) -> TelemetryStatus:
    reach = dict(RollupProgress.objects.values_list("resolution", "rolled_until"))
    rollups = []
    for resolution in ROLLUPS:
        until = reach.get(resolution.name)
        late = LateBucket.objects.filter(bucket_seconds=resolution.seconds)
        lag = (now - until).total_seconds() if until else None
        rollups.append(
            RollupStatus(resolution.name, until, lag, late.values("instance_id", "bucket_at").distinct().count())
        )
    end = reach.get(FIVE_MINUTES.name, now)
    recent = {"bucket_at__gte": end - COVERAGE_OF, "bucket_at__lt": end}
    return TelemetryStatus(
        now,
        _tables(),
        rollups,
        _history(now),
        settings.TELEMETRY_STORE,
        _overdue(now),
        GpuRollupFiveMinutes.objects.filter(**recent).aggregate(share=Avg("coverage"))["share"],
        HostRollupFiveMinutes.objects.filter(**recent).aggregate(share=Avg("coverage"))["share"],
    )


def _overdue(now: datetime) -> list[str]:
    found = partitions_past_keeping(now=now - OVERDUE_AFTER)
    return [one.name for one in found if one.table in SAMPLES and holds_rows(one)]


def _history(now: datetime) -> HistoryStatus:
    return HistoryStatus(
        settings.RAW_HISTORY_DAYS,
        [day.name for day in days_to_pack(now=now)],
        GpuHour.objects.aggregate(samples=Sum("samples"))["samples"] or 0,
        HostHour.objects.aggregate(samples=Sum("samples"))["samples"] or 0,
    )


def _tables() -> list[TableStatus]:
    sizes = _sizes()
    found = existing_partitions()
    return [
        TableStatus(
            table.name,
            table.kept.days,
            [
                PartitionStatus(one.name, one.begins_at, one.ends_at, *sizes[one.name])
                for one in found
                if one.table == table and one.name in sizes
            ],
        )
        for table in ALL
    ]


def _sizes() -> dict[str, tuple[int | None, int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname, CASE WHEN child.reltuples < 0 THEN NULL ELSE child.reltuples::bigint END, "
            "pg_total_relation_size(child.oid) FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
            "JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = ANY(%s)",
            [[table.name for table in ALL]],
        )
        return {name: (rows, size) for name, rows, size in cursor.fetchall()}
