"""Series for charts: mean readings in even buckets, with gaps as None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Max
from psycopg import sql

from fleet.inventory.models import GPU
from fleet.telemetry.models import Agent, GpuReading, HostReading

DEFAULT_INTERVAL_SECONDS = 5
# Readings come at an interval with some jitter: with buckets of one interval a healthy machine would show false gaps.
INTERVALS_PER_BUCKET = 2

GPU_FIELDS = frozenset(field.name for field in GpuReading._meta.get_fields())
HOST_FIELDS = frozenset(field.name for field in HostReading._meta.get_fields())


@dataclass(frozen=True, slots=True)
class Series:
    """`starts` holds the start of every bucket that touches [since, until), evenly spaced, aware UTC.

    `values`: gpu or instance id -> field -> one mean per bucket, None where nothing was read. Where `until` is now, the last
    bucket is still being filled and may be None on a healthy machine.
    """

    starts: list[datetime]
    bucket_seconds: float
    values: dict[int, dict[str, list[float | None]]]


def gpu_series(
    *, gpu_ids: Sequence[int], fields: Sequence[str], since: datetime, until: datetime, max_points: int = 600
) -> Series:
    """Raises ValueError for a field that is no column of GpuReading, and for an empty span."""
    instance_ids = GPU.objects.filter(pk__in=gpu_ids).values_list("instance_id", flat=True)
    source = _Source("gpu_sample", "gpu_id", GPU_FIELDS, _interval(list(instance_ids)))
    return _series(source, gpu_ids, fields, _span(since, until, max_points, source))


def host_series(
    *, instance_ids: Sequence[int], fields: Sequence[str], since: datetime, until: datetime, max_points: int = 600
) -> Series:
    """Raises ValueError for a field that is no column of HostReading, and for an empty span."""
    source = _Source("host_sample", "instance_id", HOST_FIELDS, _interval(instance_ids))
    return _series(source, instance_ids, fields, _span(since, until, max_points, source))


def bucket_size(*, span_seconds: float, max_points: int, interval_seconds: int) -> int:
    """Whole seconds, so that a span never has more than max_points buckets and each holds a healthy machine's reading."""
    # One bucket more may touch the span, because buckets lie on a grid of their own.
    return max(math.ceil(span_seconds / max(max_points - 1, 1)), INTERVALS_PER_BUCKET * interval_seconds)


@dataclass(frozen=True, slots=True)
class _Source:
    table: str
    key: str
    known_fields: frozenset[str]
    interval_seconds: int


def _interval(instance_ids: Sequence[int]) -> int:
    slowest = Agent.objects.filter(instance_id__in=instance_ids).aggregate(slowest=Max("interval_seconds"))["slowest"]
    return slowest or DEFAULT_INTERVAL_SECONDS


@dataclass(frozen=True, slots=True)
class _Span:
    """[since, until) and the grid of buckets over it: bucket n covers [n * bucket, (n + 1) * bucket) of the epoch."""

    since: datetime
    until: datetime
    bucket: int

    @property
    def first(self) -> int:
        return math.floor(self.since.timestamp() / self.bucket)

    @property
    def count(self) -> int:
        return math.ceil(self.until.timestamp() / self.bucket) - self.first

    def start_of(self, number: int) -> datetime:
        return datetime.fromtimestamp((self.first + number) * self.bucket, UTC)


def _span(since: datetime, until: datetime, max_points: int, source: _Source) -> _Span:
    seconds = (until - since).total_seconds()
    if seconds <= 0:
        raise ValueError("until must be later than since")
    bucket = bucket_size(span_seconds=seconds, max_points=max_points, interval_seconds=source.interval_seconds)
    return _Span(since, until, bucket)


def _series(source: _Source, ids: Sequence[int], fields: Sequence[str], span: _Span) -> Series:
    if unknown := sorted(set(fields) - source.known_fields):
        raise ValueError(f"{', '.join(unknown)}: no such reading; known are {', '.join(sorted(source.known_fields))}")
    first, count = span.first, span.count
    values: dict[int, dict[str, list[float | None]]] = {pk: {field: [None] * count for field in fields} for pk in ids}
    for pk, number, *means in _means(source, ids, fields, span):
        for field, mean in zip(fields, means, strict=True):
            values[pk][field][number - first] = mean
    return Series([span.start_of(number) for number in range(count)], float(span.bucket), values)


_MEANS = """
SELECT {key}, floor(extract(epoch FROM sampled_at) / %s)::bigint AS bucket, {means}
FROM {table} WHERE {key} = ANY(%s) AND sampled_at >= %s AND sampled_at < %s GROUP BY 1, 2
"""


def _means(source: _Source, ids: Sequence[int], fields: Sequence[str], span: _Span) -> list[tuple[Any, ...]]:
    if not ids or not fields:
        return []
    means = sql.SQL(", ").join(sql.SQL("avg({})::float8").format(sql.Identifier(field)) for field in fields)
    query = sql.SQL(_MEANS).format(key=sql.Identifier(source.key), table=sql.Identifier(source.table), means=means)
    with connection.cursor() as cursor:
        # Whole buckets: a part of one at either end could miss its reading and look like a gap.
        cursor.execute(query, [span.bucket, list(ids), span.start_of(0), span.start_of(span.count)])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
