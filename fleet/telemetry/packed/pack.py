"""Packing days of samples before they are dropped.

A step takes one GPU's (or machine's) samples out of the day and puts its packed hours in, in one transaction: a sample is in one place or in
the other at every moment, a crash undoes one step, and the next run goes on with what the day still holds. Samples that come for an hour
that is packed already lie in the day like any others, and the next run merges them. partitions.py drops a day only once it is empty.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from fleet.telemetry.packed.codec import pack_hour, split_payload, unpack_hour
from fleet.telemetry.packed.fields import GPU_FIELDS, HOST_FIELDS, Field
from fleet.telemetry.partitions import (
    PACKED,
    SAMPLES,
    Partition,
    Table,
    ensure_partition,
    holds_rows,
    partitions_past_keeping,
    rolled_until,
)
from fleet.telemetry.rollups.roll import try_lock
from fleet.telemetry.rollups.sort import is_sorted, sort_day

logger = logging.getLogger(__name__)

PACK_LOCK = 7_305_412_044
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_MICROSECONDS = 3_600_000_000

Hour = dict[str, Sequence[Any]]


@dataclass(slots=True)
class Done:
    """What one run moved: samples, out of so many steps."""

    steps: int = 0
    samples: int = 0


@dataclass(frozen=True, slots=True)
class _Kind:
    table: Table
    fields: Mapping[str, Field]

    @property
    def names(self) -> dict[str, sql.Composable]:
        return {"table": sql.Identifier(self.table.name), "key": sql.Identifier(self.table.key)}


_KINDS = dict(
    zip(
        SAMPLES,
        (_Kind(table, fields) for table, fields in zip(PACKED, (GPU_FIELDS, HOST_FIELDS), strict=True)),
        strict=True,
    )
)


def pack_old_days(*, now: datetime, budget_seconds: float | None = None) -> Done:
    """Pack every day that is too old to be kept as it came and rolled up; stop between two steps once the budget is spent."""
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    done = Done()
    for day in days_to_pack(now=now):
        for samples in _steps(day):
            done.steps += 1
            done.samples += samples
            if ends is not None and time.monotonic() >= ends:
                return done
    return done


def days_to_pack(*, now: datetime) -> list[Partition]:
    """Days that hold something and have to be emptied before they can go."""
    rolled = rolled_until()
    if not settings.RAW_HISTORY_DAYS or rolled is None:
        return []
    old = (one for one in partitions_past_keeping(now=now) if one.table in SAMPLES and one.ends_at <= rolled)
    return [one for one in old if holds_rows(one)]


def _steps(day: Partition) -> Iterator[int]:
    """The number of samples that each step moved."""
    if not _is_in_order(day):
        return
    kind = _KINDS[day.table]
    ensure_partition(Partition(kind.table, kind.table.period(day.first)[0]))
    owner = -1
    while True:
        with transaction.atomic():
            # Somebody else is at it.
            if not try_lock(PACK_LOCK):
                return
            found = _next_owner(day, after=owner)
            if found is None:
                return
            owner, samples = found, _pack(day, kind, found)
        yield samples


def _is_in_order(day: Partition) -> bool:
    """A day that is still to be sorted would be put back as it was, with what was packed meanwhile in it."""
    try:
        return is_sorted(day) or sort_day(day)
    except DatabaseError as error:
        logger.warning("%s could not be sorted, and is packed in a later run: %s", day.name, error)
        return False


def _next_owner(day: Partition, *, after: int) -> int | None:
    query = sql.SQL("SELECT min({key}) FROM {day} WHERE {key} > %s")
    with connection.cursor() as cursor:
        cursor.execute(query.format(key=sql.Identifier(day.table.key), day=sql.Identifier(day.name)), [after])
        row: tuple[int | None] = cursor.fetchone()
    return row[0]


def _pack(day: Partition, kind: _Kind, owner: int) -> int:
    packed = _packed_hours(day, kind, owner)
    rows, samples = [], 0
    for hour_at, hour in _taken_hours(day, kind, owner):
        samples += len(hour["sampled_at"])
        known = packed.get(hour_at)
        merged = hour if known is None else merge_hours(unpack_hour(known, kind.fields), hour)
        parts = split_payload(pack_hour(merged, kind.fields))
        rows.append((owner, hour_at, len(merged["sampled_at"]), *parts))
    _store(kind, rows)
    return samples


_TAKE = "WITH taken AS (DELETE FROM {day} WHERE {key} = %s RETURNING *) SELECT {columns} FROM taken ORDER BY sampled_at"
_COLUMNS = {"sampled_at": "(extract(epoch FROM sampled_at) * 1000000)::bigint", "devices": "devices::text"}


def _taken_hours(day: Partition, kind: _Kind, owner: int) -> Iterator[tuple[datetime, Hour]]:
    columns = (sql.SQL(_COLUMNS[name]) if name in _COLUMNS else sql.Identifier(name) for name in kind.fields)
    query = sql.SQL(_TAKE).format(
        day=sql.Identifier(day.name), key=sql.Identifier(day.table.key), columns=sql.SQL(", ").join(columns)
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [owner])
        for number, rows in groupby(cursor, key=lambda row: row[0] // HOUR_MICROSECONDS):
            hour: Hour = dict(zip(kind.fields, zip(*rows, strict=True), strict=True))
            yield EPOCH + timedelta(hours=number), hour


def _packed_hours(day: Partition, kind: _Kind, owner: int) -> dict[datetime, bytes]:
    query = sql.SQL(
        "SELECT hour_at, payload || overflow FROM {table} WHERE {key} = %s AND hour_at >= %s AND hour_at < %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query.format(**kind.names), [owner, day.begins_at, day.ends_at])
        return {hour_at.astimezone(UTC): bytes(payload) for hour_at, payload in cursor.fetchall()}


_STORE = """
INSERT INTO {table} ({key}, hour_at, samples, payload, overflow) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT ({key}, hour_at) DO UPDATE
SET samples = EXCLUDED.samples, payload = EXCLUDED.payload, overflow = EXCLUDED.overflow
"""


def _store(kind: _Kind, rows: Sequence[tuple[int, datetime, int, bytes, bytes]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(sql.SQL(_STORE).format(**kind.names), rows)


def merge_hours(known: Hour, late: Hour) -> Hour:
    """Both, in the order of time. Of two samples of one moment the known one stays, as everywhere."""
    places = {at: (late, number) for number, at in enumerate(late["sampled_at"])}
    places |= {at: (known, number) for number, at in enumerate(known["sampled_at"])}
    ordered = [places[at] for at in sorted(places)]
    return {name: [columns[name][number] for columns, number in ordered] for name in known}
