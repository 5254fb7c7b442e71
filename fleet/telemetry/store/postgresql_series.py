"""Figures of samples and rollups, by one statement over as many tables as the span takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection
from psycopg import sql

from fleet.telemetry.rollups.columns import BITS, PERCENTILE, RAW
from fleet.telemetry.spans import Segment, Span, segments_of
from fleet.telemetry.store.base import TOGETHER, Asked, Statistic
from fleet.telemetry.store.postgresql_tables import tables_of

# Binned as integers and only then turned into a number: extracting the epoch of every row would cost more than the rest.
_PART = """
SELECT {key} AS key, date_bin({bucket}, {column}, 'epoch') AS bucket_at, {partials}
FROM {table} WHERE {id} = ANY({ids}) AND {column} >= {since} AND {column} < {until} GROUP BY 1, 2
"""
_ALL = """
SELECT key, extract(epoch FROM bucket_at)::bigint / {seconds} AS bucket, {finals}
FROM ({parts}) parts GROUP BY key, bucket_at
"""


def figures(asked: Asked, span: Span) -> list[tuple[Any, ...]]:
    if not asked.ids or not asked.fields:
        return []
    finals = (_final(number, field, asked.statistic) for number, field in enumerate(asked.fields))
    query = sql.SQL(_ALL).format(
        seconds=sql.Literal(span.bucket),
        finals=sql.SQL(", ").join(finals),
        parts=sql.SQL(" UNION ALL ").join(
            _part(asked, span, segment, table)
            for segment in segments_of(span)
            for table in tables_of(segment, asked.source.kind, asked.source.key, asked.ids, asked.fields)
        ),
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _key(asked: Asked) -> sql.Composable:
    return sql.SQL(str(TOGETHER)) if asked.together else sql.Identifier(asked.source.key)


def _part(asked: Asked, span: Span, segment: Segment, table: sql.Composable) -> sql.Composed:
    is_raw = segment.resolution == RAW
    partial = _of_samples if is_raw else _of_rollups
    return sql.SQL(_PART).format(
        key=_key(asked),
        id=sql.Identifier(asked.source.key),
        bucket=sql.SQL("make_interval(secs => {})").format(sql.Literal(span.bucket)),
        column=sql.Identifier("sampled_at" if is_raw else "bucket_at"),
        table=table,
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
