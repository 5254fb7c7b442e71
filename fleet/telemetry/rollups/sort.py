"""Closed days sorted by GPU and time: an hour of one GPU is then a few pages beside each other instead of one page a minute.

A sorted copy takes the day's place. Ingest goes on meanwhile: samples that come late name their bucket in rollup_late, whose rows nobody
takes as long as this holds LATE_LOCK, so that they say exactly what the copy still lacks.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from fleet.telemetry import partitions
from fleet.telemetry.partitions import SAMPLES, Partition, existing_partitions
from fleet.telemetry.rollups.roll import FORWARD_LOCK, LATE_LOCK, try_lock, tune

logger = logging.getLogger(__name__)

# Samples of the day that came on time are committed by then, and every later one names its bucket.
CLOSED_AFTER = timedelta(hours=1)
# Written to the table as its comment, so that a day is sorted once.
SORTED = "sorted by key and time"
LOCK_TIMEOUT = "3s"


def sort_closed_days(*, now: datetime) -> list[str]:
    """Rewrite every closed day that is not sorted yet; one that readers keep busy stays as it is until the next run."""
    done = []
    for day in existing_partitions():
        if day.table not in SAMPLES or day.ends_at + CLOSED_AFTER > now or is_sorted(day):
            continue
        try:
            if sort_day(day):
                done.append(day.name)
        except DatabaseError as error:
            # Readers kept it busy, or it was dropped meanwhile.
            logger.warning("%s was not sorted: %s", day.name, error)
    return done


def is_sorted(day: Partition) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description(%s::regclass, 'pg_class')", [day.name])
        return bool(cursor.fetchone() == (SORTED,))


def sort_day(day: Partition) -> bool:
    """False: late samples are being rolled up, which has to end first."""
    with transaction.atomic():
        if not try_lock(LATE_LOCK):
            return False
        tune()
        _copy(day)
        _take_place(day)
    return True


def _run(statement: str, day: Partition) -> None:
    names = {
        "day": sql.Identifier(day.name),
        "copy": sql.Identifier(f"{day.name}_sorted"),
        "check": sql.Identifier(f"{day.name}_bounds"),
        "table": sql.Identifier(day.table.name),
        "key": sql.Identifier(day.table.key),
        "first": sql.Literal(day.begins_at.isoformat()),
        "past_last": sql.Literal(day.ends_at.isoformat()),
        "owners": sql.SQL(
            "SELECT gpu.id AS owner, bucket_at FROM rollup_late JOIN fleet_gpu gpu USING (instance_id)"
            if day.table.key == "gpu_id"
            else "SELECT instance_id AS owner, bucket_at FROM rollup_late"
        ),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**names))


# The check is what the partition's bounds say: with it, attaching need not read the table.
_COPY = (
    """CREATE TABLE {copy} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
       CONSTRAINT {check} CHECK (sampled_at IS NOT NULL AND sampled_at >= {first} AND sampled_at < {past_last}))""",
    "INSERT INTO {copy} SELECT * FROM {day} ORDER BY {key}, sampled_at",
    "ALTER TABLE {copy} ADD PRIMARY KEY ({key}, sampled_at)",
    "CREATE INDEX ON {copy} USING brin (sampled_at)",
    "ANALYZE {copy}",
)
_LATE = """
INSERT INTO {copy} SELECT sample.* FROM (SELECT DISTINCT owner, bucket_at FROM ({owners}) named) late
JOIN {day} sample ON sample.{key} = late.owner
    AND sample.sampled_at >= late.bucket_at AND sample.sampled_at < late.bucket_at + interval '1 hour'
WHERE late.bucket_at > {first}::timestamptz - interval '1 hour' AND late.bucket_at < {past_last} ON CONFLICT DO NOTHING
"""
# The table before the partition, as ingest locks them. From here on it waits, for as long as a few lookups take.
_SWAP = (
    "LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE {day} IN ACCESS EXCLUSIVE MODE",
    _LATE,
    "ALTER TABLE {table} DETACH PARTITION {day}",
    "DROP TABLE {day}",
    "ALTER TABLE {copy} RENAME TO {day}",
)


def _copy(day: Partition) -> None:
    for statement in _COPY:
        _run(statement, day)


def _take_place(day: Partition) -> None:
    with connection.cursor() as cursor:
        # No step of the rollup may be reading when the table is locked: a copy of minutes must not be thrown away for it.
        cursor.execute(partitions.TAKE_LOCK, [FORWARD_LOCK])
        cursor.execute(partitions.TAKE_LOCK, [partitions.LOCK_KEY])
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    for statement in _SWAP:
        _run(statement, day)
    with connection.cursor() as cursor:
        cursor.execute(partitions.attach(day, day.name))
    _run("ALTER TABLE {day} DROP CONSTRAINT {check}", day)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(day.name), sql.Literal(SORTED)))
