"""Series for charts over any span: one figure per even bucket, with gaps as None, from samples or from rollups (spans.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from django.db import connection
from django.db.models import Max
from django.utils import timezone
from psycopg import sql

from fleet.inventory.models import GPU
from fleet.telemetry.models import Agent, GpuReading, HostReading
from fleet.telemetry.pace import scrape_intervals
from fleet.telemetry.rollups.columns import BITS, PERCENTILE, RAW
from fleet.telemetry.spans import Segment, Span, segments_of, span_of

DEFAULT_INTERVAL_SECONDS = 5

GPU_FIELDS = frozenset(field.name for field in GpuReading._meta.get_fields())
HOST_FIELDS = frozenset(field.name for field in HostReading._meta.get_fields())

Statistic = Literal["mean", "min", "max", "p95"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
# Under this key stands what several GPUs came to together.
TOGETHER = 0


@dataclass(frozen=True, slots=True)
class Series:
    """`starts` holds the start of every bucket that touches [since, until), evenly spaced, aware UTC.

    `values`: gpu or instance id -> field -> one figure per bucket, None where nothing was read. Where `until` is now, the last
    bucket is still being filled and may be None on a healthy machine. `resolution` is the table that was read:
    "raw", "5min" or "1h". A mean over several rollups weighs each by its samples.
    """

    starts: list[datetime]
    bucket_seconds: float
    values: dict[int, dict[str, list[float | None]]]
    resolution: str = RAW.name
    statistic: Statistic = "mean"

    @property
    def percentile_of(self) -> str | None:
        """What a percentile was taken of: "samples", or "5min" and "1h", where it is the largest of the rollups' own in each bucket."""
        if self.statistic != "p95":
            return None
        return "samples" if self.resolution == RAW.name else self.resolution


def gpu_series(
    *,
    gpu_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """Raises ValueError for a field that is no column of GpuReading, for an empty span, and for fewer than two points."""
    asked = _Asked(_GPUS, gpu_ids, fields, statistic)
    return _series(asked, _span(since, until, max_points, _machines_of(gpu_ids)))


def host_series(
    *,
    instance_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """Raises ValueError for a field that is no column of HostReading, for an empty span, and for fewer than two points."""
    asked = _Asked(_HOSTS, instance_ids, fields, statistic)
    return _series(asked, _span(since, until, max_points, instance_ids))


def merged_gpu_series(
    *,
    gpu_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """All these GPUs as one, under the key TOGETHER: the mean, the lowest or the highest of what any of them read."""
    asked = _Asked(_GPUS, gpu_ids, fields, statistic, together=True)
    return _series(asked, _span(since, until, max_points, _machines_of(gpu_ids)))


@dataclass(frozen=True, slots=True)
class _Source:
    """`kind` begins the names of the tables."""

    kind: str
    key: str
    known_fields: frozenset[str]


_GPUS = _Source("gpu", "gpu_id", GPU_FIELDS)
_HOSTS = _Source("host", "instance_id", HOST_FIELDS)


@dataclass(frozen=True, slots=True)
class _Asked:
    source: _Source
    ids: Sequence[int]
    fields: Sequence[str]
    statistic: Statistic
    together: bool = False

    @property
    def selected_key(self) -> sql.Composable:
        return sql.SQL(str(TOGETHER)) if self.together else sql.Identifier(self.source.key)


def _machines_of(gpu_ids: Sequence[int]) -> list[int]:
    return list(GPU.objects.filter(pk__in=gpu_ids).values_list("instance_id", flat=True))


def slowest_interval(instance_ids: Sequence[int]) -> int:
    """In seconds, of the agents of these machines."""
    slowest = Agent.objects.filter(instance_id__in=instance_ids).aggregate(slowest=Max("interval_seconds"))["slowest"]
    return max(slowest or 0, *scrape_intervals(instance_ids).values(), 0) or DEFAULT_INTERVAL_SECONDS


def _span(since: datetime, until: datetime, max_points: int, instance_ids: Sequence[int]) -> Span:
    interval = slowest_interval(instance_ids)
    return span_of(since=since, until=until, now=timezone.now(), max_points=max_points, interval_seconds=interval)


def _series(asked: _Asked, span: Span) -> Series:
    known = asked.source.known_fields
    if unknown := sorted(set(asked.fields) - known):
        raise ValueError(f"{', '.join(unknown)}: no such reading; known are {', '.join(sorted(known))}")
    keys = [TOGETHER] if asked.together else asked.ids
    values: dict[int, dict[str, list[float | None]]] = {
        pk: {field: [None] * span.count for field in asked.fields} for pk in keys
    }
    for pk, number, *figures in _figures(asked, span):
        for field, figure in zip(asked.fields, figures, strict=True):
            values[pk][field][number - span.first] = figure
    return Series(span.starts, float(span.bucket), values, span.resolution.name, asked.statistic)


# Binned as integers and only then turned into a number: extracting the epoch of every row would cost more than the rest.
_PART = """
SELECT {key} AS key, date_bin({bucket}, {column}, 'epoch') AS bucket_at, {partials}
FROM {table} WHERE {id} = ANY({ids}) AND {column} >= {since} AND {column} < {until} GROUP BY 1, 2
"""
_ALL = """
SELECT key, extract(epoch FROM bucket_at)::bigint / {seconds} AS bucket, {finals}
FROM ({parts}) parts GROUP BY key, bucket_at
"""


def _figures(asked: _Asked, span: Span) -> list[tuple[Any, ...]]:
    if not asked.ids or not asked.fields:
        return []
    finals = (_final(number, field, asked.statistic) for number, field in enumerate(asked.fields))
    query = sql.SQL(_ALL).format(
        seconds=sql.Literal(span.bucket),
        finals=sql.SQL(", ").join(finals),
        parts=sql.SQL(" UNION ALL ").join(_part(asked, span, segment) for segment in segments_of(span)),
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _part(asked: _Asked, span: Span, segment: Segment) -> sql.Composed:
    is_raw, kind = segment.resolution == RAW, asked.source.kind
    partial = _of_samples if is_raw else _of_rollups
    return sql.SQL(_PART).format(
        key=asked.selected_key,
        id=sql.Identifier(asked.source.key),
        bucket=sql.SQL("make_interval(secs => {})").format(sql.Literal(span.bucket)),
        column=sql.Identifier("sampled_at" if is_raw else "bucket_at"),
        table=sql.Identifier(f"{kind}_sample" if is_raw else f"{kind}_rollup_{segment.resolution.name}"),
        ids=sql.Literal(list(asked.ids)),
        since=sql.Literal(segment.since),
        until=sql.Literal(segment.until),
        partials=_named(partial(field, asked.statistic) for field in asked.fields),
    )


def _named(partials: Iterable[tuple[sql.Composable, ...]]) -> sql.Composed:
    """Each field's parts as f<number>_<part>, so that _final finds them whichever table they come from."""

    def each() -> Iterator[sql.Composed]:
        for number, parts in enumerate(partials):
            for part, expression in enumerate(parts):
                yield sql.SQL("{} AS {}").format(expression, sql.Identifier(f"f{number}_{part}"))

    return sql.SQL(", ").join(each())


def _of_samples(field: str, statistic: Statistic) -> tuple[sql.Composable, ...]:
    name = sql.Identifier(field)
    if field == BITS:
        return (sql.SQL("bit_or({})").format(name),)
    if statistic == "mean":
        return sql.SQL("sum({})::float8").format(name), sql.SQL("count({})").format(name)
    if statistic == "p95":
        ranked = sql.SQL("percentile_disc({}) WITHIN GROUP (ORDER BY {})::float8")
        return (ranked.format(sql.Literal(PERCENTILE), name),)
    return (sql.SQL(f"{statistic}({{}})::float8").format(name),)


def _of_rollups(field: str, statistic: Statistic) -> tuple[sql.Composable, ...]:
    if field == BITS:
        return (sql.SQL("bit_or({})").format(sql.Identifier(field)),)
    if statistic == "mean":
        mean = sql.Identifier(f"{field}_avg")
        weight = sql.SQL("sum(samples) FILTER (WHERE {} IS NOT NULL)").format(mean)
        return sql.SQL("sum({}::float8 * samples)").format(mean), weight
    combine = "min" if statistic == "min" else "max"
    return (sql.SQL(f"{combine}({{}})::float8").format(sql.Identifier(f"{field}_{statistic}")),)


def _final(number: int, field: str, statistic: Statistic) -> sql.Composed:
    first = sql.Identifier(f"f{number}_0")
    if field == BITS:
        return sql.SQL("bit_or({})::float8").format(first)
    if statistic == "mean":
        weights = sql.Identifier(f"f{number}_1")
        return sql.SQL("(sum({}) / nullif(sum({}), 0))::float8").format(first, weights)
    return sql.SQL(f"{'min' if statistic == 'min' else 'max'}({{}})").format(first)
