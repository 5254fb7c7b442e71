"""Hours of GPUs whose samples nobody has: written as they would have been rolled up, in one go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from psycopg import sql

from fleet.states import GpuState
from fleet.telemetry.partitions import SPECS, ensure_partitions
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.fleet import make_groups
from fleet.telemetry.rollups.fleet_models import FleetRollupProgress
from fleet.telemetry.rollups.statements import SAME_GROUP
from fleet.telemetry.state_codes import SECONDS_COLUMNS

HOURS = next(table for table in SPECS if table.name == "gpu_rollup_1h")
_UTILIZATION = (
    "utilization_percent_min",
    "utilization_percent_avg",
    "utilization_percent_max",
    "utilization_percent_p95",
)
_COLUMNS = ("gpu_id", "group_id", "bucket_at", "samples", "coverage", *SECONDS_COLUMNS.values(), *_UTILIZATION)
_COPY = sql.SQL("COPY {} ({}) FROM STDIN").format(
    sql.Identifier(HOURS.name), sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
)
_GROUPS = sql.SQL(
    "SELECT gpu.id, alike.id FROM fleet_gpu gpu JOIN fleet_instance machine ON machine.id = gpu.instance_id "
    "JOIN rollup_group alike ON {same_group} WHERE gpu.id = ANY(%s)"
).format(same_group=SAME_GROUP)


@dataclass(frozen=True, slots=True)
class GpuHour:
    """Seconds by state come to the hour; `utilization_percent` None: off, or nothing was read."""

    gpu_id: int
    bucket_at: datetime
    samples: int
    coverage: float
    seconds: Mapping[GpuState, float]
    utilization_percent: float | None


@transaction.atomic
def write_past_hours(rows: Iterable[GpuHour], *, gpus: Collection[int], since: datetime, now: datetime) -> int:
    """Of `gpus`, which must be new: an hour that is there already is an IntegrityError. `since`: the earliest hour.

    What is past keeping is left out. Charts of the whole fleet count these hours, too, as soon as it is rolled up next.
    """
    ensure_partitions(now=now, since=since, tables=[HOURS])
    make_groups()
    groups = _groups_of(gpus)
    kept_from = now - HOURS.kept if HOURS.kept else since
    written = 0
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in rows:
            if row.bucket_at >= kept_from:
                copy.write_row(_values(row, groups.get(row.gpu_id)))
                written += 1
    FleetRollupProgress.objects.filter(resolution=HOUR.name, rolled_until__gt=since).update(rolled_until=since)
    return written


def _groups_of(gpus: Collection[int]) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS, [list(gpus)])
        return dict(cursor.fetchall())


def _values(row: GpuHour, group_id: int | None) -> tuple[object, ...]:
    seconds = (row.seconds.get(state, 0.0) for state in SECONDS_COLUMNS)
    read = [row.utilization_percent] * len(_UTILIZATION)
    return (row.gpu_id, group_id, row.bucket_at, row.samples, row.coverage, *seconds, *read)
