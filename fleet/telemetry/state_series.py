"""Seconds that GPUs spent in each state, in even buckets, for spans that are longer than samples are read for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone
from psycopg import sql

from fleet.inventory.models import GPU
from fleet.states import GpuState
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.series import slowest_interval
from fleet.telemetry.spans import Segment, Span, segments_of, span_of
from fleet.telemetry.state_codes import SECONDS_COLUMNS, STATE_CODES

Seconds = dict[GpuState, float]


@dataclass(frozen=True, slots=True)
class StateSeries:
    """`seconds`: GPU id -> one dict per bucket, None where nothing is known of the GPU; only states that it was in have an entry."""

    starts: list[datetime]
    bucket_seconds: float
    resolution: str
    seconds: dict[int, list[Seconds | None]]


def state_series(*, gpu_ids: Sequence[int], since: datetime, until: datetime, max_points: int = 600) -> StateSeries:
    """Raises ValueError for an empty span, and for fewer than two points.

    The time that is not rolled up yet is told by its samples alone: silence in it is not counted as any state.
    """
    interval = slowest_interval(list(GPU.objects.filter(pk__in=gpu_ids).values_list("instance_id", flat=True)))
    span = span_of(since=since, until=until, now=timezone.now(), max_points=max_points, interval_seconds=interval)
    seconds: dict[int, list[Seconds | None]] = {pk: [None] * span.count for pk in gpu_ids}
    for pk, number, *parts in _rows(gpu_ids, span, interval):
        found = {state: float(part) for state, part in zip(SECONDS_COLUMNS, parts, strict=True) if part}
        seconds[pk][number - span.first] = found or None
    return StateSeries(span.starts, float(span.bucket), span.resolution.name, seconds)


_PART = """
SELECT gpu_id, {column} AS at, {seconds} FROM {table}
WHERE gpu_id = ANY({ids}) AND {column} >= {since} AND {column} < {until}
"""
_ALL = """
SELECT gpu_id, extract(epoch FROM date_bin(make_interval(secs => {bucket}), at, 'epoch'))::bigint / {bucket} AS bucket, {sums}
FROM ({parts}) parts GROUP BY gpu_id, bucket
"""


def _rows(gpu_ids: Sequence[int], span: Span, interval: int) -> list[tuple[Any, ...]]:
    if not gpu_ids:
        return []
    parts = (_part(gpu_ids, segment, interval) for segment in segments_of(span))
    query = sql.SQL(_ALL).format(
        bucket=sql.Literal(span.bucket),
        sums=sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in SECONDS_COLUMNS.values()),
        parts=sql.SQL(" UNION ALL ").join(parts),
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _part(gpu_ids: Sequence[int], segment: Segment, interval: int) -> sql.Composed:
    is_raw = segment.resolution == RAW
    seconds = (_of_sample(state, interval) if is_raw else sql.Identifier(SECONDS_COLUMNS[state]) for state in GpuState)
    return sql.SQL(_PART).format(
        column=sql.Identifier("sampled_at" if is_raw else "bucket_at"),
        table=sql.Identifier("gpu_sample" if is_raw else f"gpu_rollup_{segment.resolution.name}"),
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
