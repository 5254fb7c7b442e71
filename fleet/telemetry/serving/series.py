"""Series of serving endpoints: rates, means and percentiles per even bucket, from readings or from sums of 5 min or 1 h."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.utils import timezone
from psycopg import sql

from fleet.telemetry.rollups.columns import RAW, Resolution
from fleet.telemetry.series import Series
from fleet.telemetry.serving.columns import GAUGES, LATENCIES
from fleet.telemetry.spans import Span, span_of

# How often an agent reads an engine, at the fastest.
INTERVAL_SECONDS = 10

_RATES = {
    "requests_per_second": "requests_finished",
    "requests_failed_per_second": "requests_failed",
    "prompt_tokens_per_second": "prompt_tokens",
    "generation_tokens_per_second": "generation_tokens",
}
# field -> its expression over one bucket's rows; gauges depend on the table.
_EXPRESSIONS = {
    **{field: f"sum({grown}) / nullif(sum(interval_seconds), 0)" for field, grown in _RATES.items()},
    **{f"{name}_seconds": f"sum({name}_seconds_sum) / nullif(sum({name}_count), 0)" for name in LATENCIES},
    **{f"{name}_seconds_p95": f"max({name}_seconds_p95)" for name in LATENCIES},
}
FIELDS: tuple[str, ...] = (*_EXPRESSIONS, *GAUGES)

_QUERY = """
SELECT endpoint_id, extract(epoch FROM date_bin(make_interval(secs => {bucket}), {column}, 'epoch'))::bigint / {bucket} AS bucket, {figures}
FROM {table} WHERE endpoint_id = ANY({ids}) AND {column} >= {since} AND {column} < {until} GROUP BY 1, 2
"""


def serving_series(
    *, endpoint_ids: Sequence[int], fields: Sequence[str], since: datetime, until: datetime, max_points: int = 600
) -> Series:
    """Keys are endpoint ids. A percentile is the largest that any reading in the bucket had.

    Raises ValueError for a field that is none of FIELDS, for an empty span, and for fewer than two points.
    """
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise ValueError(f"{', '.join(unknown)}: no such figure; known are {', '.join(FIELDS)}")
    span = span_of(
        since=since, until=until, now=timezone.now(), max_points=max_points, interval_seconds=INTERVAL_SECONDS
    )
    values: dict[int, dict[str, list[float | None]]] = {
        pk: {field: [None] * span.count for field in fields} for pk in endpoint_ids
    }
    for pk, bucket, *figures in _figures(endpoint_ids, fields, span):
        for field, figure in zip(fields, figures, strict=True):
            values[pk][field][bucket - span.first] = figure
    return Series(span.starts, float(span.bucket), values, span.resolution.name)


def _figures(endpoint_ids: Sequence[int], fields: Sequence[str], span: Span) -> list[tuple[int, ...]]:
    if not endpoint_ids or not fields:
        return []
    is_raw = span.resolution == RAW
    query = sql.SQL(_QUERY).format(
        bucket=sql.Literal(span.bucket),
        column=sql.Identifier("sampled_at" if is_raw else "bucket_at"),
        table=sql.Identifier("serving_sample" if is_raw else f"serving_rollup_{span.resolution.name}"),
        figures=sql.SQL(", ").join(sql.SQL(_expression(field, span.resolution)) for field in fields),
        ids=sql.Literal(list(endpoint_ids)),
        since=sql.Literal(span.start_of(0)),
        until=sql.Literal(span.start_of(span.count)),
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[int, ...]] = cursor.fetchall()
    return rows


def _expression(field: str, resolution: Resolution) -> str:
    if field not in GAUGES:
        return f"({_EXPRESSIONS[field]})::float8"
    return f"avg({field})" if resolution == RAW else f"sum({field}_total) / nullif(sum({field}_readings), 0)"
