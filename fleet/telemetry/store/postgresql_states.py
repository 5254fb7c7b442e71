"""Seconds in each state out of rollups, and out of samples where nothing is rolled up yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from psycopg import sql

from fleet.states import GpuState
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.spans import Segment, Span, segments_of
from fleet.telemetry.state_codes import SECONDS_COLUMNS, STATE_CODES
from fleet.telemetry.store.postgresql_tables import tables_of

_PART = """
SELECT gpu_id, {column} AS at, {seconds} FROM {table}
WHERE gpu_id = ANY({ids}) AND {column} >= {since} AND {column} < {until}
"""
_ALL = """
SELECT gpu_id, extract(epoch FROM date_bin(make_interval(secs => {bucket}), at, 'epoch'))::bigint / {bucket} AS bucket, {sums}
FROM ({parts}) parts GROUP BY gpu_id, bucket
"""


def state_seconds(gpu_ids: Sequence[int], span: Span, *, interval_seconds: int) -> list[tuple[Any, ...]]:
    if not gpu_ids:
        return []
    parts = (
        _part(gpu_ids, segment, interval_seconds, table)
        for segment in segments_of(span)
        for table in tables_of(segment, "gpu", "gpu_id", gpu_ids, ["state"])
    )
    query = sql.SQL(_ALL).format(
        bucket=sql.Literal(span.bucket),
        sums=sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in SECONDS_COLUMNS.values()),
        parts=sql.SQL(" UNION ALL ").join(parts),
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _part(gpu_ids: Sequence[int], segment: Segment, interval: int, table: sql.Composable) -> sql.Composed:
    is_raw = segment.resolution == RAW
    seconds = (_of_sample(state, interval) if is_raw else sql.Identifier(SECONDS_COLUMNS[state]) for state in GpuState)
    return sql.SQL(_PART).format(
        column=sql.Identifier("sampled_at" if is_raw else "bucket_at"),
        table=table,
        ids=sql.Literal(list(gpu_ids)),
        since=sql.Literal(segment.since),
        until=sql.Literal(segment.until),
        seconds=sql.SQL(", ").join(seconds),
    )


def _of_sample(state: GpuState, interval: int) -> sql.Composed:
    """Samples from before states were kept are of an unknown one, as in rollups."""
    unknown = STATE_CODES[GpuState.UNKNOWN]
    share = sql.SQL("CASE WHEN coalesce(state, {}) = {} THEN {}::real ELSE 0 END AS {}")
    code, name = sql.Literal(STATE_CODES[state]), sql.Identifier(SECONDS_COLUMNS[state])
    return share.format(sql.Literal(unknown), code, sql.Literal(interval), name)
