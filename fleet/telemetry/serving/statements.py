"""The SQL of readings of serving endpoints. Rollups grow in the statement that stores the readings: a reading that is stored counts, once.

So there is no job to lag behind, late readings need no second look, and a batch that is sent twice adds nothing.
"""

from __future__ import annotations

from fleet.telemetry.ingest.arrays import FLOAT8, INT8
from fleet.telemetry.ingest.statements import Columns, names, unnest
from fleet.telemetry.serving.columns import COLUMNS, COUNTS, GAUGES, HIGHEST, SUMS

READING: Columns = [(name, INT8 if name in COUNTS else FLOAT8) for name in COLUMNS]
SAMPLE: Columns = [("endpoint_id", INT8), ("at", FLOAT8), *READING]
LATEST: Columns = [("id", INT8), ("at", FLOAT8), ("received_at", FLOAT8), *READING]
REQUESTED: Columns = [("id", INT8), ("at", FLOAT8)]


def _aggregates() -> dict[str, str]:
    """Column of a rollup -> how it is made of readings."""
    sums = {name: f"sum({name})" for name in SUMS}
    highest = {name: f"max({name})" for name in HIGHEST}
    gauges = {
        column: expression
        for name in GAUGES
        for column, expression in (
            (f"{name}_total", f"sum({name})"),
            (f"{name}_readings", f"count({name})"),
        )
    }
    return {"samples": "count(*)", **sums, **gauges, **highest}


AGGREGATES = _aggregates()


def _joined(column: str) -> str:
    """How a column of a row that is there takes in more readings; what was never known stays so."""
    if column in HIGHEST:
        return f"{column} = greatest(t.{column}, excluded.{column})"
    return f"{column} = coalesce(t.{column} + excluded.{column}, t.{column}, excluded.{column})"


def _roll(table: str, seconds: int) -> str:
    bucket = f"date_bin(make_interval(secs => {seconds}), sampled_at, 'epoch')"
    return (
        f"INSERT INTO {table} AS t (endpoint_id, bucket_at, {', '.join(AGGREGATES)}) "
        f"SELECT endpoint_id, {bucket}, {', '.join(AGGREGATES.values())} FROM added GROUP BY 1, 2 ORDER BY 1, 2 "
        f"ON CONFLICT (endpoint_id, bucket_at) DO UPDATE SET {', '.join(_joined(name) for name in AGGREGATES)}"
    )


INSERT_SAMPLES = (
    f"WITH added AS (INSERT INTO serving_sample (endpoint_id, sampled_at, {names(READING)}) "
    f"SELECT u.endpoint_id, to_timestamp(u.at), {names(READING, 'u.')} FROM {unnest(SAMPLE)} ON CONFLICT DO NOTHING "
    f"RETURNING *), five_minutes AS ({_roll('serving_rollup_5min', 300)}) {_roll('serving_rollup_1h', 3600)}"
)
# Moves forward only. Ordered by the caller: two web processes then lock rows in the same order.
UPDATE_LATEST = (
    "UPDATE serving_latest t SET sampled_at = to_timestamp(u.at), received_at = to_timestamp(u.received_at), "
    f"{', '.join(f'{name} = u.{name}' for name in COLUMNS)} FROM {unnest(LATEST)} "
    "WHERE t.id = u.id AND (t.sampled_at IS NULL OR t.sampled_at < to_timestamp(u.at))"
)
# Also from readings that come late: a request that was seen was there.
UPDATE_REQUESTED = (
    "UPDATE serving_latest t SET last_request_at = to_timestamp(u.at) "
    f"FROM {unnest(REQUESTED)} WHERE t.id = u.id AND to_timestamp(u.at) > coalesce(t.last_request_at, '-infinity')"
)
ADD_ENDPOINTS = """
INSERT INTO serving_latest (instance_id, engine, model, port, first_seen_at)
SELECT %s, engine, model, port, now() FROM unnest(%s::text[], %s::text[], %s::int[]) AS u(engine, model, port)
ON CONFLICT (instance_id, engine, model, port) DO UPDATE SET engine = excluded.engine RETURNING engine, model, port, id
"""
KNOWN_ENDPOINTS = "SELECT engine, model, port, id FROM serving_latest WHERE instance_id = %s"
