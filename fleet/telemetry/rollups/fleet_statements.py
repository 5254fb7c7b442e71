"""The SQL that counts GPUs' rollups together by group. Made from rows of GPUs alone, so that it can be made again for as long as those are kept."""

from __future__ import annotations

from psycopg import sql

from fleet.telemetry.rollups.fleet_models import UTILIZATION_BINS
from fleet.telemetry.rollups.statements import GROUP_COLUMNS, GROUP_OF_GPU, SAME_GROUP
from fleet.telemetry.state_codes import SECONDS_COLUMNS

_NEW_GROUPS = """
INSERT INTO rollup_group ({columns})
SELECT DISTINCT {values} FROM fleet_gpu gpu JOIN fleet_instance machine ON machine.id = gpu.instance_id
LEFT JOIN rollup_group alike ON {same_group} WHERE alike.id IS NULL
ON CONFLICT DO NOTHING
"""
_FORGET = """
DELETE FROM {table} WHERE bucket_at >= %(since)s AND bucket_at < %(until)s AND {which}
"""
# A card that is cut into MIG instances has a power and no utilization, its instances the other way round: it counts for its power alone.
_COUNT = """
WITH cut AS (
    SELECT DISTINCT instance_id, mig_parent_uuid AS uuid FROM fleet_gpu
    WHERE mig_parent_uuid <> '' AND (removed_at IS NULL OR removed_at > %(since)s)
), counted AS (
    SELECT coalesce(one.group_id, alike.id) AS group_id, one.bucket_at, {seconds}, one.power_watts_avg,
        CASE WHEN cut.uuid IS NULL AND one.utilization_percent_avg IS NOT NULL
            THEN least({top}, round(one.utilization_percent_avg))::int END AS percent,
        CASE WHEN cut.uuid IS NULL THEN 1 ELSE 0 END AS share
    FROM {gpu_table} one LEFT JOIN fleet_gpu gpu ON gpu.id = one.gpu_id
    LEFT JOIN fleet_instance machine ON machine.id = gpu.instance_id
    LEFT JOIN rollup_group alike ON one.group_id IS NULL AND {same_group}
    LEFT JOIN cut ON cut.instance_id = gpu.instance_id AND cut.uuid = gpu.uuid
    WHERE one.bucket_at >= %(since)s AND one.bucket_at < %(until)s
), piled AS (
    SELECT group_id, bucket_at, percent, {shares}, count(*) AS gpus,
        sum(power_watts_avg::float8) AS watts, count(power_watts_avg) AS power_gpus
    FROM counted WHERE group_id IS NOT NULL AND {which} GROUP BY group_id, bucket_at, percent
)
INSERT INTO {table} (group_id, bucket_at, {seconds}, utilization_gpus, power_watts, power_gpus)
SELECT group_id, bucket_at, {sums}, ARRAY[{bins}], sum(watts), sum(power_gpus)
FROM piled GROUP BY group_id, bucket_at ORDER BY bucket_at, group_id
"""
_EVERY = sql.SQL("true")
_OF_TEAMS = sql.SQL("group_id IN (SELECT id FROM rollup_group WHERE team_id = ANY(%(team_ids)s))")


def make_groups() -> sql.Composed:
    """No parameters."""
    return sql.SQL(_NEW_GROUPS).format(columns=GROUP_COLUMNS, values=GROUP_OF_GPU, same_group=SAME_GROUP)


def forget(resolution: str, *, some: bool) -> sql.Composed:
    """Parameters: since, until; `some`: team_ids."""
    return sql.SQL(_FORGET).format(table=_table("fleet", resolution), which=_OF_TEAMS if some else _EVERY)


def count_groups(resolution: str, *, some: bool) -> sql.Composed:
    """Parameters: since, until; `some`: team_ids."""
    columns = [sql.Identifier(name) for name in SECONDS_COLUMNS.values()]
    bins = (sql.SQL(f"coalesce(sum(gpus) FILTER (WHERE percent = {number}), 0)") for number in range(UTILIZATION_BINS))
    return sql.SQL(_COUNT).format(
        table=_table("fleet", resolution),
        gpu_table=_table("gpu", resolution),
        same_group=SAME_GROUP,
        top=sql.Literal(UTILIZATION_BINS - 1),
        seconds=sql.SQL(", ").join(columns),
        shares=sql.SQL(", ").join(sql.SQL("sum({0}::float8 * share) AS {0}").format(column) for column in columns),
        sums=sql.SQL(", ").join(sql.SQL("sum({})").format(column) for column in columns),
        bins=sql.SQL(", ").join(bins),
        which=_OF_TEAMS if some else _EVERY,
    )


def _table(kind: str, resolution: str) -> sql.Identifier:
    return sql.Identifier(f"{kind}_rollup_{resolution}")
