"""The SQL that rolls one bucket of samples up. Both resolutions are made from samples, so that every figure of both is exact.

A row is replaced only by one of at least as many samples: what was rolled from samples that are gone since is never lost to a re-roll.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psycopg import sql

from fleet.providers.base import InstanceState
from fleet.states import GpuState
from fleet.telemetry.rollups.columns import BITS, GPU_ROLLED, HOST_ROLLED, PERCENTILE, STATISTICS
from fleet.telemetry.state_codes import SECONDS_COLUMNS, STATE_CODES

# In the order of min, p95, max: one sort of the bucket's values answers all three.
_QUANTILES = {"min": 1, "p95": 2, "max": 3}
# A GPU's group (fleet_models.RollupGroup) by what is known of it and its machine now.
GROUP_COLUMNS = sql.SQL("team_id, account_id, project_id, gpu_model, tenancy")
GROUP_OF_GPU = sql.SQL(
    "machine.team_id, machine.account_id, machine.project_id, "
    "coalesce(nullif(machine.gpu_model, ''), regexp_replace(gpu.name, '^NVIDIA ', '')), machine.tenancy"
)
SAME_GROUP = sql.SQL(
    "alike.team_id = machine.team_id AND alike.account_id = machine.account_id "
    "AND alike.project_id IS NOT DISTINCT FROM machine.project_id AND alike.tenancy = machine.tenancy "
    "AND alike.gpu_model = coalesce(nullif(machine.gpu_model, ''), regexp_replace(gpu.name, '^NVIDIA ', ''))"
)
_OFF = (InstanceState.STOPPED.value, InstanceState.TERMINATED.value)


def _joined(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _aggregates(readings: Sequence[str]) -> sql.Composed:
    one = sql.SQL(
        "avg({field}) AS {avg}, percentile_disc(ARRAY[0, {percentile}, 1]) WITHIN GROUP (ORDER BY {field}) AS {quantiles}"
    )
    return _joined(
        one.format(
            field=sql.Identifier(name),
            avg=sql.Identifier(f"{name}_avg"),
            quantiles=sql.Identifier(f"{name}_q"),
            percentile=sql.Literal(PERCENTILE),
        )
        for name in readings
    )


def _statistics(readings: Sequence[str]) -> sql.Composed:
    """Expressions over _aggregates, in the order of _names."""
    return _joined(
        sql.Identifier("cell", f"{name}_avg")
        if statistic == "avg"
        else sql.SQL("{}[{}]").format(sql.Identifier("cell", f"{name}_q"), sql.Literal(_QUANTILES[statistic]))
        for name in readings
        for statistic in STATISTICS
    )


def _names(readings: Sequence[str]) -> list[str]:
    return [f"{name}_{statistic}" for name in readings for statistic in STATISTICS]


def _upsert(key: str, columns: Sequence[str]) -> sql.Composed:
    changed = _joined(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in columns)
    clause = sql.SQL("ON CONFLICT ({}, bucket_at) DO UPDATE SET {} WHERE EXCLUDED.samples >= rolled.samples")
    return clause.format(sql.Identifier(key), changed)


# A sample stands for the interval that it names, else for the pace of its machine now: the agent's, unless it said nothing since the bucket began.
_TOLD = sql.SQL("coalesce(sum(interval_seconds), 0) AS told_seconds, count(*) - count(interval_seconds) AS untold")
_COVERAGE = sql.SQL(
    "least(1, coalesce(cell.told_seconds + cell.untold * coalesce(CASE WHEN agent.batch_at >= %(since)s THEN agent.interval_seconds END, "
    "pace.seconds, agent.interval_seconds, %(interval)s), 0) / %(width)s::float8)"
)
# How often machines without an agent are read.
_PACE = """
pace AS (
    SELECT instance_id, max(seconds) AS seconds FROM (
        SELECT instance_id, interval_seconds AS seconds FROM fleet_scrapetarget WHERE enabled
        UNION ALL SELECT instance_id, sample_seconds FROM fleet_sourcemachine WHERE sample_seconds > 0
    ) every GROUP BY instance_id
)
"""

_GPU = """
WITH {pace}, cell AS (
    SELECT gpu_id, count(*) AS samples, {told}, bit_or({bits}) AS {bits}, {state_counts}, {aggregates}
    FROM gpu_sample WHERE sampled_at >= %(since)s AND sampled_at < %(until)s AND {which_samples} GROUP BY gpu_id
), present AS (
    SELECT gpu.id AS gpu_id, gpu.instance_id, alike.id AS group_id, coalesce(cell.samples, 0) AS samples,
        {coverage} AS coverage
    FROM fleet_gpu gpu JOIN fleet_instance machine ON machine.id = gpu.instance_id
    LEFT JOIN fleet_agent agent ON agent.instance_id = machine.id
    LEFT JOIN pace ON pace.instance_id = machine.id
    LEFT JOIN cell ON cell.gpu_id = gpu.id
    LEFT JOIN rollup_group alike ON {same_group}
    WHERE {which_gpus} AND (cell.gpu_id IS NOT NULL OR (
        gpu.first_seen_at < %(until)s AND (gpu.removed_at IS NULL OR gpu.removed_at > %(since)s)
        AND (machine.gone_at IS NULL OR machine.gone_at > %(since)s)))
), silent AS (
    SELECT DISTINCT instance_id FROM present WHERE coverage < 1
), listed AS (
    SELECT silent.instance_id, log.state, greatest(log.seen_at, %(since)s) AS begins,
        lead(log.seen_at, 1, %(until)s) OVER (PARTITION BY silent.instance_id ORDER BY log.seen_at, log.id) AS ends
    FROM silent CROSS JOIN LATERAL (
        (SELECT id, state, seen_at FROM fleet_observation WHERE instance_id = silent.instance_id AND seen_at <= %(since)s
         ORDER BY seen_at DESC, id DESC LIMIT 1)
        UNION ALL
        SELECT id, state, seen_at FROM fleet_observation
        WHERE instance_id = silent.instance_id AND seen_at > %(since)s AND seen_at < %(until)s
    ) log
), off AS (
    SELECT instance_id, sum(extract(epoch FROM ends - begins))::float8 AS seconds
    FROM listed WHERE state IN ({off_states}) GROUP BY instance_id
), timed AS (
    SELECT present.*, %(width)s * coverage AS covered, %(width)s * (1 - coverage) AS uncovered,
        least(%(width)s * (1 - coverage), coalesce(off.seconds, 0)) AS off_seconds
    FROM present LEFT JOIN off USING (instance_id)
)
INSERT INTO {table} AS rolled (gpu_id, bucket_at, group_id, samples, coverage, {bits}, {columns})
SELECT timed.gpu_id, %(since)s, timed.group_id, timed.samples, timed.coverage, cell.{bits}, {state_seconds}, {statistics}
FROM timed LEFT JOIN cell ON cell.gpu_id = timed.gpu_id ORDER BY timed.gpu_id
{upsert}
"""

_HOST = """
WITH {pace}, cell AS (
    SELECT instance_id, count(*) AS samples, {told}, {aggregates}
    FROM host_sample WHERE sampled_at >= %(since)s AND sampled_at < %(until)s AND {which} GROUP BY instance_id
)
INSERT INTO {table} AS rolled (instance_id, bucket_at, samples, coverage, {columns})
SELECT machine.id, %(since)s, cell.samples, {coverage}, {statistics}
FROM cell JOIN fleet_instance machine ON machine.id = cell.instance_id
LEFT JOIN fleet_agent agent ON agent.instance_id = machine.id
    LEFT JOIN pace ON pace.instance_id = machine.id ORDER BY machine.id
{upsert}
"""


def _state_counts() -> sql.Composed:
    count = sql.SQL("count(*) FILTER (WHERE state = {}) AS {}")
    return _joined(count.format(sql.Literal(code), sql.Identifier(state.value)) for state, code in STATE_CODES.items())


# Samples from before states were kept are of an unknown state.
_UNKNOWN_SAMPLES = sql.SQL("samples - ({})").format(
    sql.SQL(" + ").join(sql.Identifier("cell", state.value) for state in STATE_CODES if state != GpuState.UNKNOWN)
)
_SHARE = "coalesce(covered * ({count}) / nullif(timed.samples, 0), 0)"


def _state_seconds() -> sql.Composed:
    """Each sample stands for an even share of the time that is covered; the rest is off where listings showed it, else unknown."""
    return _joined(_seconds_in(state) for state in SECONDS_COLUMNS)


def _seconds_in(state: GpuState) -> sql.Composable:
    count: sql.Composable = sql.Identifier("cell", state.value)
    if state == GpuState.UNKNOWN:
        count = sql.SQL("timed.") + _UNKNOWN_SAMPLES
        return sql.SQL(_SHARE + " + uncovered - off_seconds").format(count=count)
    share = sql.SQL(_SHARE).format(count=count)
    return share + sql.SQL(" + off_seconds") if state == GpuState.STOPPED else share


def _identifiers(names: Iterable[str]) -> sql.Composed:
    return _joined(sql.Identifier(name) for name in names)


def roll_gpus(table: str, *, some: bool) -> sql.Composed:
    """Parameters: since, until, width, interval (expected where nothing says one); `some`: instance_ids, else first_id and past_last_id."""
    columns = [*SECONDS_COLUMNS.values(), *_names(GPU_ROLLED)]
    of_some = "{} = ANY(ARRAY(SELECT id FROM fleet_gpu WHERE instance_id = ANY(%(instance_ids)s)))"
    of_range = "{0} >= %(first_id)s AND {0} < %(past_last_id)s"
    which = of_some if some else of_range
    return sql.SQL(_GPU).format(
        pace=sql.SQL(_PACE),
        told=_TOLD,
        coverage=_COVERAGE,
        bits=sql.Identifier(BITS),
        table=sql.Identifier(table),
        state_counts=_state_counts(),
        aggregates=_aggregates(GPU_ROLLED),
        which_samples=sql.SQL(which).format(sql.Identifier("gpu_id")),
        which_gpus=sql.SQL(which).format(sql.Identifier("gpu", "id")),
        same_group=SAME_GROUP,
        off_states=_joined(sql.Literal(state) for state in _OFF),
        columns=_identifiers(columns),
        state_seconds=_state_seconds(),
        statistics=_statistics(GPU_ROLLED),
        upsert=_upsert("gpu_id", ["samples", "coverage", BITS, *columns]),
    )


def roll_hosts(table: str, *, some: bool) -> sql.Composed:
    """Parameters: since, until, width, interval; `some`: instance_ids, else all machines."""
    columns = _names(HOST_ROLLED)
    return sql.SQL(_HOST).format(
        pace=sql.SQL(_PACE),
        told=_TOLD,
        coverage=_COVERAGE,
        table=sql.Identifier(table),
        aggregates=_aggregates(HOST_ROLLED),
        which=sql.SQL("instance_id = ANY(%(instance_ids)s)" if some else "true"),
        columns=_identifiers(columns),
        statistics=_statistics(HOST_ROLLED),
        upsert=_upsert("instance_id", ["samples", "coverage", *columns]),
    )
