"""Windows out of PostgreSQL: rollups of five minutes as far as they are made, samples behind them. One statement for any number of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from psycopg import sql

from fleet.idle.watch.highest import GPU_READINGS, HOST_COUNTS, HOST_RATES, GpuHighest, HostHighest, Wanted
from fleet.telemetry.rollups.columns import FIVE_MINUTES, PERCENTILE
from fleet.telemetry.rollups.models import RollupProgress

# Samples of the present may be a little ahead of our clock.
AHEAD = timedelta(minutes=1)
# Rollups that are made in time are no further behind; for longer than that, nobody's rest is believed.
BEHIND_AT_MOST = timedelta(minutes=10)

# Each GPU by its own index range: a scan of the time would read what every GPU of the fleet did, for the longest window of all.
_STATEMENT = """\
WITH asked AS MATERIALIZED (
    SELECT id, to_timestamp(since) AS since, pace, to_timestamp(rests_from) AS rests_from, to_timestamp(rests_until) AS rests_until
    FROM unnest(%(ids)s::bigint[], %(sinces)s::float8[], %(paces)s::int[], %(rests_from)s::float8[], %(rests_until)s::float8[])
        AS asked(id, since, pace, rests_from, rests_until)
), read AS (
    SELECT asked.id, rolled.coverage::float8 * {width} AS covered, {rolled}
    FROM asked JOIN {rollups} rolled ON rolled.{key} = asked.id AND rolled.bucket_at >= asked.since
    WHERE rolled.bucket_at >= %(first)s AND rolled.bucket_at < %(reached)s
    UNION ALL
    SELECT asked.id, least(sum(coalesce(sample.interval_seconds, asked.pace)), {width}), {samples}
    FROM asked JOIN {table} sample ON sample.{key} = asked.id AND sample.sampled_at >= asked.since
    WHERE sample.sampled_at >= greatest(%(first)s, %(reached)s) AND sample.sampled_at < %(until)s
        AND (asked.rests_from IS NULL OR asked.rests_from > greatest(asked.since, %(reached)s))
    GROUP BY asked.id, date_bin('5 minutes', sample.sampled_at, 'epoch')
    UNION ALL
    SELECT asked.id, extract(epoch FROM asked.rests_until - greatest(asked.since, %(reached)s))::float8, {nothing}
    FROM asked WHERE asked.rests_from <= greatest(asked.since, %(reached)s) AND asked.rests_until > greatest(asked.since, %(reached)s)
)
SELECT id, sum(covered), {highest} FROM read GROUP BY id
"""


class PostgresReadings:
    def gpus(self, wanted: Wanted, *, now: datetime) -> dict[int, GpuHighest]:
        columns = [("utilization_percent", "min"), *((name, "max") for name in GPU_READINGS)]
        return {pk: GpuHighest(*values) for pk, *values in _read("gpu", "gpu_id", columns, wanted, now)}

    def hosts(self, wanted: Wanted, *, now: datetime) -> dict[int, HostHighest]:
        columns = [*((name, "p95") for name in HOST_RATES), *((name, "max") for name in HOST_COUNTS)]
        return {pk: HostHighest(*values) for pk, *values in _read("host", "instance_id", columns, wanted, now)}


def _read(
    kind: str, key: str, columns: Sequence[tuple[str, str]], wanted: Wanted, now: datetime
) -> Iterable[tuple[Any, ...]]:
    if not wanted.ids:
        return []
    first = min(wanted.sinces)
    reached = _rolled_until(first)
    is_late = now - reached > BEHIND_AT_MOST
    rests = [None if is_late else wanted.rests.get(pk) for pk in wanted.ids]
    # Moments as numbers: of twenty thousand, text would take a tenth of a second.
    given: dict[str, Any] = {
        "ids": list(wanted.ids),
        "sinces": [since.timestamp() for since in wanted.sinces],
        "paces": list(wanted.paces),
        "rests_from": [rest and rest[0].timestamp() for rest in rests],
        "rests_until": [rest and rest[1].timestamp() for rest in rests],
        "first": first,
        "reached": reached,
        "until": now + AHEAD,
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(kind, key, columns), given)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _rolled_until(first: datetime) -> datetime:
    """Where samples take over; without any rollups from the beginning."""
    progress = RollupProgress.objects.filter(resolution=FIVE_MINUTES.name)
    return progress.values_list("rolled_until", flat=True).first() or first


def _statement(kind: str, key: str, columns: Sequence[tuple[str, str]]) -> sql.Composed:
    return sql.SQL(_STATEMENT).format(
        width=sql.Literal(float(FIVE_MINUTES.seconds)),
        key=sql.Identifier(key),
        rollups=sql.Identifier(f"{kind}_rollup_{FIVE_MINUTES.name}"),
        table=sql.Identifier(f"{kind}_sample"),
        rolled=_listed(sql.SQL("{} AS {}").format(_rolled(*one), sql.Identifier("_".join(one))) for one in columns),
        samples=_listed(_of_samples(*one) for one in columns),
        nothing=_listed(sql.SQL("NULL::float8") for _one in columns),
        highest=_listed(_over_all(*one) for one in columns),
    )


def _rolled(name: str, statistic: str) -> sql.Composed:
    return sql.SQL("rolled.{}::float8").format(sql.Identifier(f"{name}_{statistic}"))


def _of_samples(name: str, statistic: str) -> sql.Composed:
    column = sql.Identifier("sample", name)
    if statistic == "p95":
        ranked = sql.SQL("percentile_disc({}) WITHIN GROUP (ORDER BY {})::float8")
        return ranked.format(sql.Literal(PERCENTILE), column)
    return sql.SQL(f"{statistic}({{}})::float8").format(column)


def _over_all(name: str, statistic: str) -> sql.Composed:
    function = "min" if statistic == "min" else "max"
    return sql.SQL(f"{function}({{}})").format(sql.Identifier(f"{name}_{statistic}"))


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
