"""Partitions of samples (a day each) and rollups (a week, a month): there before they are needed, dropped when settings say so.

Samples of two days back are still accepted, and there are always two days ahead, so that no midnight finds ingest without a partition.
A period of samples is dropped only when it is rolled up and, where history is kept, packed. The SQL is shared by the synchronous callers (command, beat, migrations) and by
ingest, which repairs a missing day itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from fleet.telemetry.rollups.columns import ROLLUPS

# How far back samples are accepted, and how far ahead there are partitions for them.
DAYS_BACK = 2
DAYS_AHEAD = 2
# Batches that were accepted just before a day's samples became too old are still being written.
DROP_GRACE = timedelta(hours=1)
# Any number that nothing else locks; it serializes processes that make or drop partitions at once.
LOCK_KEY = 7_305_412_041
# A long read must not make a drop queue up, with all of ingest behind it.
DROP_LOCK_TIMEOUT = "3s"

TAKE_LOCK = "SELECT pg_advisory_xact_lock(%s)"
EXISTING = """
SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = ANY(%s) ORDER BY 1
"""


def _day(day: date) -> tuple[date, date]:
    return day, day + timedelta(days=1)


def _week(day: date) -> tuple[date, date]:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=7)


def _month(day: date) -> tuple[date, date]:
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


@dataclass(frozen=True, slots=True)
class Table:
    """`period` gives the first day and the day after the last of the partition that a day lies in; `setting` says how long it is kept."""

    name: str
    column: str
    key: str
    period: Callable[[date], tuple[date, date]]
    setting: str

    @property
    def kept(self) -> timedelta:
        """Zero: for ever."""
        return timedelta(days=getattr(settings, self.setting))


SAMPLES = (
    Table("gpu_sample", "sampled_at", "gpu_id", _day, "RAW_RETENTION_DAYS"),
    Table("host_sample", "sampled_at", "instance_id", _day, "RAW_RETENTION_DAYS"),
)
FLEET = (
    Table("fleet_rollup_5min", "bucket_at", "group_id", _month, "ROLLUP_5MIN_RETENTION_DAYS"),
    Table("fleet_rollup_1h", "bucket_at", "group_id", _month, "ROLLUP_1H_RETENTION_DAYS"),
)
# Rollups of these grow with the readings themselves (serving.statements).
SERVING = (
    Table("serving_sample", "sampled_at", "endpoint_id", _day, "RAW_RETENTION_DAYS"),
    Table("serving_rollup_5min", "bucket_at", "endpoint_id", _week, "ROLLUP_5MIN_RETENTION_DAYS"),
    Table("serving_rollup_1h", "bucket_at", "endpoint_id", _month, "ROLLUP_1H_RETENTION_DAYS"),
)
SPECS = (
    *SAMPLES,
    *FLEET,
    *SERVING,
    Table("gpu_rollup_5min", "bucket_at", "gpu_id", _week, "ROLLUP_5MIN_RETENTION_DAYS"),
    Table("host_rollup_5min", "bucket_at", "instance_id", _week, "ROLLUP_5MIN_RETENTION_DAYS"),
    Table("gpu_rollup_1h", "bucket_at", "gpu_id", _month, "ROLLUP_1H_RETENTION_DAYS"),
    Table("host_rollup_1h", "bucket_at", "instance_id", _month, "ROLLUP_1H_RETENTION_DAYS"),
)
# Their partitions are made when there is something to pack (packed/pack.py).
PACKED = (
    Table("gpu_hour", "hour_at", "gpu_id", _week, "RAW_HISTORY_DAYS"),
    Table("host_hour", "hour_at", "instance_id", _week, "RAW_HISTORY_DAYS"),
)
ALL = (*SPECS, *PACKED)
TABLES = tuple(table.name for table in ALL)
_BY_LENGTH = sorted(ALL, key=lambda table: -len(table.name))


@dataclass(frozen=True, slots=True)
class Partition:
    """[first, past_last) of one table, named after its first day."""

    table: Table
    first: date

    @property
    def name(self) -> str:
        return f"{self.table.name}_{self.first:%Y%m%d}"

    @property
    def past_last(self) -> date:
        return self.table.period(self.first)[1]

    @property
    def begins_at(self) -> datetime:
        return _midnight(self.first)

    @property
    def ends_at(self) -> datetime:
        return _midnight(self.past_last)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def partition_named(name: str) -> Partition:
    table = next(table for table in _BY_LENGTH if name.startswith(f"{table.name}_"))
    return Partition(table, datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC).date())


def days_kept(now: datetime, *, since: datetime | None = None) -> list[date]:
    """From two days back (or `since`, where that is earlier) to two days ahead."""
    today = now.astimezone(UTC).date()
    first = today - timedelta(days=DAYS_BACK)
    if since is not None:
        first = min(first, since.astimezone(UTC).date())
    return [first + timedelta(days=offset) for offset in range((today - first).days + DAYS_AHEAD + 1)]


def missing_statements(
    existing: Iterable[str], now: datetime, *, since: datetime | None = None, tables: Sequence[Table] = SPECS
) -> list[sql.Composed]:
    """What makes the partitions that are not there yet; `existing` comes from EXISTING, both run under LOCK_KEY.

    Attached, not created in place: CREATE … PARTITION OF would lock out readers and ingest, and wait for the longest read.
    """
    known = set(existing)
    wanted = {
        partition.name: partition
        for table in tables
        for day in days_kept(now, since=since)
        for partition in [Partition(table, table.period(day)[0])]
    }
    return [
        statement
        for name, partition in wanted.items()
        if name not in known
        for statement in (create_like(partition, name), attach(partition, name))
    ]


def create_like(partition: Partition, name: str) -> sql.Composed:
    create = sql.SQL("CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    return create.format(name=sql.Identifier(name), table=sql.Identifier(partition.table.name))


def attach(partition: Partition, name: str) -> sql.Composed:
    statement = sql.SQL("ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({past_last})")
    return statement.format(
        name=sql.Identifier(name),
        table=sql.Identifier(partition.table.name),
        first=sql.Literal(f"{partition.first} 00:00:00+00"),
        past_last=sql.Literal(f"{partition.past_last} 00:00:00+00"),
    )


def ensure_partitions(*, now: datetime, since: datetime | None = None, tables: Sequence[Table] = SPECS) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_LOCK, [LOCK_KEY])
        existing = [partition.name for partition in existing_partitions()]
        for statement in missing_statements(existing, now, since=since, tables=tables):
            cursor.execute(statement)


def ensure_partition(partition: Partition) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_LOCK, [LOCK_KEY])
        if partition not in existing_partitions():
            cursor.execute(create_like(partition, partition.name))
            cursor.execute(attach(partition, partition.name))


def are_partitioned() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = ANY(%s) AND relkind = 'p'", [list(TABLES)])
        return bool(cursor.fetchone() == (len(TABLES),))


def drop_old_partitions(*, now: datetime) -> list[str]:
    """Drop the periods whose last moment is too old to be kept, samples only where they are rolled up. Returns the names of the dropped."""
    rolled = rolled_until()
    return [one.name for one in partitions_past_keeping(now=now) if _drop(one, rolled)]


def partitions_past_keeping(*, now: datetime) -> list[Partition]:
    return [one for one in existing_partitions() if one.table.kept and one.ends_at <= now - DROP_GRACE - one.table.kept]


def rolled_until() -> datetime | None:
    """Before this, nothing of the samples is missing from any rollup; None: they were never rolled up."""
    with connection.cursor() as cursor:
        cursor.execute(
            # The table also says how far other counts have come: only rollups are made from samples.
            "SELECT least(min(rolled_until), (SELECT min(bucket_at) FROM rollup_late)) FROM rollup_progress "
            "WHERE resolution = ANY(%s) HAVING count(*) = %s",
            [[one.name for one in ROLLUPS], len(ROLLUPS)],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def holds_rows(partition: Partition) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(partition.name)))
        return bool(cursor.fetchone() == (True,))


def existing_partitions() -> list[Partition]:
    with connection.cursor() as cursor:
        cursor.execute(EXISTING, [list(TABLES)])
        return [partition_named(name) for (name,) in cursor.fetchall()]


def _drop(partition: Partition, rolled: datetime | None) -> bool:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_LOCK, [LOCK_KEY])
        # Another process may have dropped it meanwhile.
        if partition not in existing_partitions():
            return False
        cursor.execute(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
        if not _may_lose_rows(partition, rolled):
            # Whoever still wrote to so old a day would do it before the look or find the day gone.
            cursor.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(sql.Identifier(partition.name)))
            if holds_rows(partition):
                return False
        cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(partition.name)))
    return True


def _may_lose_rows(partition: Partition, rolled: datetime | None) -> bool:
    """Packing empties a day of samples; until it has, a day has something that is nowhere else."""
    if partition.table not in SAMPLES:
        return True
    return not settings.RAW_HISTORY_DAYS and rolled is not None and partition.ends_at <= rolled
