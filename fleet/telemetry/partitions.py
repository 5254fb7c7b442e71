"""Daily partitions of the sample tables, from two days back to two days ahead, so that no midnight finds ingest without one.

The SQL is shared by the synchronous callers (command, beat, migrations) and by ingest, which repairs a missing day itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.db import connection, transaction
from psycopg import sql

TABLES = ("gpu_sample", "host_sample")
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


def days_kept(now: datetime) -> list[date]:
    today = now.astimezone(UTC).date()
    return [today + timedelta(days=offset) for offset in range(-DAYS_BACK, DAYS_AHEAD + 1)]


def missing_statements(existing: Iterable[str], now: datetime) -> list[sql.Composed]:
    """What makes the days that are not there yet; `existing` comes from EXISTING, both run under LOCK_KEY.

    Attached, not created in place: CREATE … PARTITION OF would lock out readers and ingest, and wait for the longest read.
    """
    known = set(existing)
    wanted = [(table, f"{table}_{day:%Y%m%d}", day) for table in TABLES for day in days_kept(now)]
    return [
        statement
        for table, name, day in wanted
        if name not in known
        for statement in (_create(table, name), _attach(table, name, day))
    ]


def _create(table: str, name: str) -> sql.Composed:
    create = sql.SQL("CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    return create.format(name=sql.Identifier(name), table=sql.Identifier(table))


def _attach(table: str, name: str, day: date) -> sql.Composed:
    attach = sql.SQL("ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({past_last})")
    return attach.format(
        name=sql.Identifier(name),
        table=sql.Identifier(table),
        first=sql.Literal(f"{day} 00:00:00+00"),
        past_last=sql.Literal(f"{day + timedelta(days=1)} 00:00:00+00"),
    )


def ensure_partitions(*, now: datetime) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_LOCK, [LOCK_KEY])
        existing = [name for name, _ in existing_partitions()]
        for statement in missing_statements(existing, now):
            cursor.execute(statement)


def are_partitioned() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = ANY(%s) AND relkind = 'p'", [list(TABLES)])
        return bool(cursor.fetchone() == (len(TABLES),))


def drop_old_partitions(*, now: datetime) -> list[str]:
    """Drop the days whose last moment is too old to be kept. Returns the names of the dropped tables."""
    oldest = now.astimezone(UTC) - DROP_GRACE - timedelta(days=DAYS_BACK)
    dropped = []
    for name, day in existing_partitions():
        if datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) <= oldest:
            _drop(name)
            dropped.append(name)
    return dropped


def existing_partitions() -> list[tuple[str, date]]:
    with connection.cursor() as cursor:
        cursor.execute(EXISTING, [list(TABLES)])
        names = [name for (name,) in cursor.fetchall()]
    return [(name, datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC).date()) for name in names]


def _drop(name: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_LOCK, [LOCK_KEY])
        cursor.execute(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
        cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
