"""The SQL that makes days of money: intervals x hours x whose they are x what the GPUs did.

Every product is exact; only the result is rounded, to the 14 digits of its column. It is rounded cumulatively: cell n is what n cells
come to, rounded, less what n - 1 come to. So the cells of a charge add up to it, nothing is negative by rounding, and nothing stays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import sql

from fleet.costs.spend.reading import AMOUNTS, GPU_SECONDS
from fleet.states import GpuState

RUNNING = tuple(state.value for state in GPU_SECONDS)
STATES = tuple(state.value for state in AMOUNTS)
SUMS = ("amount", *AMOUNTS.values(), *GPU_SECONDS.values(), "seconds", "unpriced_seconds")
DAY_KEY = ("team_id", "day", "instance_id", "group_id", "meter", "currency")
GROUP_DAY_KEY = ("team_id", "day", "group_id", "meter", "currency")
MONTH_KEY = ("team_id", "month", "instance_id", "group_id", "meter", "currency")
GROUP_KEY = (
    "team_id",
    "account_id",
    "project_id",
    "owner_id",
    "job",
    "labels_digest",
    "gpu_model",
    "market",
    "tenancy",
    "region",
    "idle_share",
)
WHOSE = ("project_id", "owner_id", "job", "labels", "labels_digest", "idle_share")

# What is to be summed: from a day on, of a machine, or (0) of what an account is charged for without one.
_WANTED = """
wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(accounts)s::bigint[], %(instances)s::bigint[], %(since_days)s::date[]) AS one (account_id, instance_id, since_day)
), day AS MATERIALIZED (
    SELECT * FROM unnest(%(days)s::date[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[]) AS one (day, since, until)
)
"""
# An interval within a day and an hour of UTC; months of UTC are whole hours. `paid`: the share of the hour that its meter was charged for.
_PIECES = """
charge AS (
    SELECT meter.id AS meter_id, meter.account_id, coalesce(meter.instance_id, 0) AS instance_id, meter.kind, one.unit, one.unit_price * one.quantity AS price,
        one.currency, one.market, wanted.since_day, lower(one.period) AS since, least(upper(one.period), %(until)s::timestamptz) AS until,
        extract(epoch FROM upper(one.period) - lower(one.period)) AS length
    FROM wanted JOIN ledger_meter meter
        ON meter.account_id = wanted.account_id AND coalesce(meter.instance_id, 0) = wanted.instance_id AND meter.kind <> 'nothing'
    JOIN ledger_interval one ON one.meter_id = meter.id AND one.period && tstzrange(%(since)s, %(until)s)
), cut AS (
    SELECT charge.*, day.day, hour, greatest(charge.since, day.since, hour) AS begins, least(charge.until, day.until, hour + '1 hour'::interval) AS ends,
        extract(epoch FROM least(charge.until, hour + '1 hour'::interval) - greatest(charge.since, hour)) AS in_hour
    FROM charge JOIN day ON day.since < charge.until AND day.until > charge.since AND day.day >= charge.since_day
    CROSS JOIN LATERAL generate_series(
        date_trunc('hour', greatest(charge.since, day.since), 'UTC'), least(charge.until, day.until) - '1 microsecond'::interval, '1 hour'
    ) AS hour
), timed AS (
    SELECT cut.*, extract(epoch FROM ends - begins) AS seconds, date_trunc('month', hour AT TIME ZONE 'UTC') AS month,
        sum(in_hour) OVER (PARTITION BY meter_id, day, hour)::float8 / 3600 AS paid
    FROM cut
), piece AS (
    SELECT account_id, instance_id, day, hour, kind, currency, market, seconds, paid,
        CASE WHEN price IS NULL AND kind <> 'unknown' THEN seconds ELSE 0 END AS unpriced_seconds,
        coalesce(CASE
            WHEN unit = 'hour' THEN price * seconds / 3600
            WHEN unit = '' THEN 0
            WHEN unit <> 'once' THEN price * seconds / extract(epoch FROM month + '1 month'::interval - month)
            WHEN length IS NOT NULL THEN price * seconds / length
            -- Nobody knows when it ends: all of it is charged when it begins.
            WHEN begins = since THEN price
        END, 0) AS amount
    FROM timed
    UNION ALL
    SELECT one.account_id, wanted.instance_id, day.day, date_trunc('hour', one.at, 'UTC'), 'adjustment', one.currency, '', 0, 0, 0, one.amount
    FROM wanted JOIN cost_adjustment one ON one.account_id = wanted.account_id AND coalesce(one.instance_id, 0) = wanted.instance_id
    JOIN day ON one.at >= day.since AND one.at < day.until AND day.day >= wanted.since_day
)
"""
# Cards that are cut into MIG instances count by these for what they do, and by themselves for how many there are.
_HOURS = """
gpu AS MATERIALIZED (
    SELECT one.id, one.instance_id, one.mig_parent_uuid = '' AS is_card, EXISTS (
        SELECT FROM fleet_gpu part WHERE part.instance_id = one.instance_id AND part.mig_parent_uuid = one.uuid AND one.uuid <> ''
    ) AS is_cut
    FROM fleet_gpu one WHERE one.instance_id = ANY(%(instances)s)
), machine_hour AS MATERIALIZED (
    SELECT gpu.instance_id, bucket_at AS hour, count(*) FILTER (WHERE is_card) AS cards, {cumulated},
        sum(stopped_seconds::float8) FILTER (WHERE NOT is_cut) AS stopped
    FROM gpu_rollup_1h one JOIN gpu ON gpu.id = one.gpu_id
    WHERE bucket_at >= date_trunc('hour', %(since)s::timestamptz, 'UTC') AND bucket_at < %(until)s
    GROUP BY gpu.instance_id, bucket_at
)
"""
# Of an hour: whose which share of it is.
_WHOSE = """
span AS MATERIALIZED (
    SELECT one.*, md5(one.labels::text) AS labels_digest, progress.until AS final_until, greatest(lower(one.period), date_trunc('hour', %(since)s::timestamptz, 'UTC')) AS since,
        least(upper(one.period), %(until)s::timestamptz) AS until
    FROM attribution_span one LEFT JOIN share_progress progress ON one.split <> 'whole' AND progress.instance_id = one.instance_id
    WHERE one.instance_id = ANY(%(instances)s) AND one.period && tstzrange(date_trunc('hour', %(since)s::timestamptz, 'UTC'), %(until)s)
), span_hour AS (
    SELECT span.*, hour, split <> 'whole' AND coalesce(hour < final_until, false) AS is_split
    FROM span CROSS JOIN LATERAL generate_series(since, until - '1 microsecond'::interval, '1 hour') AS hour
), shared AS MATERIALIZED (
    SELECT span.instance_id, span.hour, coalesce(one.project_id, span.project_id) AS project_id, one.owner_id, one.job, span.labels, span.labels_digest, one.share
    FROM span_hour span JOIN share_hour one ON one.instance_id = span.instance_id AND one.hour = span.hour WHERE span.is_split
), whose AS (
    SELECT instance_id, hour, project_id, owner_id, job, labels, labels_digest, false AS idle_share, 1::numeric AS share FROM span_hour WHERE NOT is_split
    UNION ALL SELECT instance_id, hour, project_id, owner_id, job, labels, labels_digest, false, share FROM shared
    UNION ALL SELECT span.instance_id, span.hour, span.project_id, NULL, '', span.labels, span.labels_digest, true, 1 - coalesce(taken.share, 0)
    FROM span_hour span LEFT JOIN (SELECT instance_id, hour, sum(share) AS share FROM shared GROUP BY instance_id, hour) taken USING (instance_id, hour)
    WHERE span.is_split AND coalesce(taken.share, 0) < 1
)
"""
# `running`: how much of a charge was paid while the machine was on. What was paid beyond the time that it was on was paid while it was off.
# Shares of time are whole billionths: their products are exact, and PostgreSQL is quick with whole numbers.
# `unseen`: time beyond the one that was paid, before a machine was there or after: what is not known of an hour is of this first.
_WEIGHED = """
owned AS (
    SELECT piece.*, whose.project_id, whose.owner_id, coalesce(whose.job, '') AS job, coalesce(whose.labels, '{{}}') AS labels,
        coalesce(whose.labels_digest, md5('{{}}')) AS labels_digest, coalesce(whose.idle_share, false) AS idle_share, coalesce(whose.share, 1) AS share,
        CASE WHEN kind = 'compute' THEN coalesce(nullif(hour.cards, 0), machine.gpu_count, 0) ELSE 0 END AS cards,
        coalesce(machine.gpu_model, '') AS gpu_model, coalesce(machine.tenancy, '') AS tenancy, coalesce(machine.region, '') AS region,
        {cumulated_hours}, coalesce(hour.stopped, 0) AS stopped
    FROM piece LEFT JOIN fleet_instance machine ON machine.id = piece.instance_id
    LEFT JOIN machine_hour hour ON hour.instance_id = piece.instance_id AND hour.hour = piece.hour AND kind NOT IN ('adjustment', 'unknown', 'disk_stopped')
    LEFT JOIN whose ON whose.instance_id = piece.instance_id AND whose.hour = piece.hour
), seen AS (
    SELECT *, greatest(0, {last} - paid * ({last} + stopped)) AS unseen FROM owned
), weighed AS MATERIALIZED (
    SELECT *, {last} - least(unseen, {last} - {last_but_one}) AS running_seconds,
        CASE WHEN kind = 'disk_stopped' THEN 0 WHEN {last} + stopped <= 0 OR paid <= 0 THEN {whole}
            ELSE round({whole} * least(1, {last} / ({last} + stopped) / paid))::bigint END AS running
    FROM seen
), shares AS MATERIALIZED (
    SELECT *, {cumulated_shares}, amount * share AS part, (seconds * share)::float8 AS share_seconds FROM weighed
)
"""
_SUMMED = """
summed AS MATERIALIZED (
    SELECT %(team_id)s::bigint AS team_id, day, instance_id, account_id, kind, currency, market, gpu_model, tenancy, region, {whose},
        {exact}, {gpu_seconds}, sum(share_seconds) AS seconds, sum((unpriced_seconds * share)::float8) AS unpriced_seconds
    FROM shares GROUP BY day, instance_id, account_id, kind, currency, market, gpu_model, tenancy, region, {whose}
)
"""
# No other transaction makes groups of the team meanwhile: what is not found is made.
_GROUPS = """
made AS (
    INSERT INTO cost_group (labels, {columns}) SELECT DISTINCT ON ({columns}) labels, {columns} FROM summed
    WHERE NOT EXISTS (SELECT FROM cost_group "group" WHERE {same}) RETURNING id, {columns}
), "group" AS (
    SELECT id, {columns} FROM cost_group WHERE team_id = %(team_id)s UNION ALL SELECT id, {columns} FROM made
), grouped AS (
    SELECT summed.*, "group".id AS group_id FROM summed JOIN "group" ON {same}
), counted AS (
    SELECT *, sum({all_states}) OVER cells - ({all_states}) AS before
    FROM grouped WINDOW cells AS (PARTITION BY day, instance_id, kind, currency ORDER BY group_id ROWS UNBOUNDED PRECEDING)
), rounded AS (
    SELECT *, {cells} FROM counted
), line AS MATERIALIZED (
    SELECT team_id, day, nullif(instance_id, 0) AS instance_id, group_id, kind AS meter, currency, {amount} AS amount, {columns_of_sums}
    FROM rounded
)
"""
# Rows that say the same already stay as they are: of machines that are off, nothing is written every few minutes.
_REPLACE = """
gone AS (
    DELETE FROM {table} kept USING {scope} AND NOT EXISTS (SELECT FROM line WHERE {same})
    RETURNING {told_of_kept}
), written AS (
    INSERT INTO {table} AS kept ({columns}) SELECT {columns} FROM line
    ON CONFLICT ({key}) DO UPDATE SET {changes} WHERE {differs}
    RETURNING {told_of_kept}
)
SELECT DISTINCT {told} FROM (SELECT {told} FROM gone UNION ALL SELECT {told} FROM written) AS touched
"""
_DAY_SCOPE = """
wanted, cost_group "group" WHERE kept.team_id = %(team_id)s AND kept.day >= %(first_day)s AND kept.day < %(past_last_day)s
    AND "group".id = kept.group_id AND wanted.account_id = "group".account_id
    AND wanted.instance_id = coalesce(kept.instance_id, 0) AND kept.day >= wanted.since_day
"""
_GROUP_DAY_SCOPE = "pair WHERE kept.team_id = %(team_id)s AND kept.day = pair.day AND kept.group_id = pair.group_id"
_MONTH_SCOPE = """
wanted, cost_group "group" WHERE kept.team_id = %(team_id)s AND kept.month = %(month)s AND "group".id = kept.group_id
    AND wanted.account_id = "group".account_id AND wanted.instance_id = coalesce(kept.instance_id, 0)
"""
# Of a share of time.
WHOLE = 10**9


def sum_days() -> sql.Composed:
    """Writes cost_day for `instances` of `accounts` from `since_days` on, within `days`; answers the (day, group_id, instance_id) that changed.

    Parameters: team_id; accounts, instances (0: without a machine), since_days; days, sinces, untils; since, until: of all the days;
    first_day, past_last_day: beyond the days that have begun, in case that rows are there.
    """
    parts: list[str | sql.Composed] = [_WANTED, _PIECES, _hours(), _WHOSE, _weighed(), _summed(), _groups()]
    lines = [sql.SQL(one) if isinstance(one, str) else one for one in parts]
    return (
        sql.SQL("WITH ")
        + sql.SQL(", ").join(lines)
        + sql.SQL(", ")
        + _replace("cost_day", DAY_KEY, _DAY_SCOPE, ("day", "group_id", "instance_id"))
    )


def sum_group_days() -> sql.Composed:
    """Derives cost_group_day from cost_day. Parameters: team_id; days and groups: the pairs that changed."""
    line = sql.SQL(
        "WITH pair AS MATERIALIZED (SELECT * FROM unnest(%(days)s::date[], %(groups)s::bigint[]) AS one (day, group_id)), line AS MATERIALIZED ("
        "SELECT team_id, day, group_id, meter, currency, {sums} FROM cost_day JOIN pair USING (day, group_id) "
        "WHERE team_id = %(team_id)s GROUP BY team_id, day, group_id, meter, currency), "
    ).format(sums=_sum_all())
    return line + _replace("cost_group_day", GROUP_DAY_KEY, _GROUP_DAY_SCOPE, ("day",))


def sum_months() -> sql.Composed:
    """Derives cost_month from cost_day. Parameters: team_id, month, past_month (days); accounts, instances (0: without a machine)."""
    line = sql.SQL(
        "WITH wanted AS MATERIALIZED (SELECT * FROM unnest(%(accounts)s::bigint[], %(instances)s::bigint[]) AS one (account_id, instance_id)), "
        "line AS MATERIALIZED (SELECT day.team_id, %(month)s::date AS month, day.instance_id, group_id, meter, currency, {sums} FROM cost_day day "
        'JOIN cost_group "group" ON "group".id = day.group_id '
        'JOIN wanted ON wanted.account_id = "group".account_id AND wanted.instance_id = coalesce(day.instance_id, 0) '
        "WHERE day.team_id = %(team_id)s AND day >= %(month)s AND day < %(past_month)s "
        "GROUP BY day.team_id, day.instance_id, group_id, meter, currency), "
    ).format(sums=_sum_all())
    return line + _replace("cost_month", MONTH_KEY, _MONTH_SCOPE, ("month",))


def _hours() -> sql.Composed:
    """`to_<state>`: seconds in this state and those before it."""
    cumulated = [
        sql.SQL("sum({})").format(_plus(f"{one}_seconds::float8" for one in RUNNING[: place + 1]))
        + sql.SQL(" FILTER (WHERE NOT is_cut) AS {}").format(_to(state))
        for place, state in enumerate(RUNNING)
    ]
    return sql.SQL(_HOURS).format(cumulated=_joined(cumulated))


def _weighed() -> sql.Composed:
    """`share_to_<state>`: the share of the time that the machine was on, of this state and those before it. Of the last one, all."""
    *states, last = RUNNING
    whole = sql.Literal(WHOLE)
    shares = [
        sql.SQL("CASE WHEN running_seconds > 0 THEN round({} * {} / running_seconds)::bigint ELSE 0 END AS {}").format(
            whole, _to(state), _share_to(state)
        )
        for state in states
    ]
    return sql.SQL(_WEIGHED).format(
        last=_to(last),
        last_but_one=_to(states[-1]),
        whole=whole,
        cumulated_hours=_joined([sql.SQL("coalesce(hour.{0}, 0) AS {0}").format(_to(state)) for state in RUNNING]),
        cumulated_shares=_joined([*shares, sql.SQL("{}::bigint AS {}").format(whole, _share_to(last))]),
    )


def _summed() -> sql.Composed:
    """The factor comes after the sum: what is added up is an exact product with whole numbers."""
    exact = [
        sql.SQL("coalesce(sum(part * nullif({}, 0)), 0) * {}::numeric AS {}").format(
            _weight(state), sql.Literal(f"1e-{2 * (len(str(WHOLE)) - 1)}"), _exact(state)
        )
        for state in STATES
    ]
    gpu_seconds = [
        sql.SQL("sum(share_seconds * cards * {}) / {} AS {}").format(
            _weight(state), sql.Literal(float(WHOLE) ** 2), sql.Identifier(f"{state}_gpu_seconds")
        )
        for state in RUNNING
    ]
    return sql.SQL(_SUMMED).format(
        whose=_joined([sql.Identifier(name) for name in WHOSE]), exact=_joined(exact), gpu_seconds=_joined(gpu_seconds)
    )


def _weight(state: str) -> sql.Composed:
    """The share of a charge that was paid in a state, in billionths of billionths; the seven add up to all of it."""
    if state == GpuState.STOPPED:
        return sql.SQL("(({0} - running) * {0})").format(sql.Literal(WHOLE))
    if state == RUNNING[0]:
        return sql.SQL("(running * {})").format(_share_to(state))
    before = RUNNING[RUNNING.index(state) - 1]
    return sql.SQL("(running * ({} - {}))").format(_share_to(state), _share_to(before))


def _groups() -> sql.Composed:
    cells = [
        sql.SQL("round({}, 14) - round({}, 14) AS {}").format(
            _before(place + 1), _before(place), sql.Identifier(AMOUNTS[GpuState(state)])
        )
        for place, state in enumerate(STATES)
    ]
    # NULL is a value of its own, and `IS NOT DISTINCT FROM` would compare every line with every group.
    same = [
        sql.SQL(
            "coalesce(summed.{0}, 0) = coalesce({1}.{0}, 0)"
            if name in {"project_id", "owner_id"}
            else "summed.{0} = {1}.{0}"
        ).format(sql.Identifier(name), sql.Identifier("group"))
        for name in GROUP_KEY
    ]
    return sql.SQL(_GROUPS).format(
        columns=_names(GROUP_KEY),
        same=sql.SQL(" AND ").join(same),
        all_states=_plus(f"exact_{state}" for state in STATES),
        cells=_joined(cells),
        amount=_plus(AMOUNTS.values()),
        columns_of_sums=_names(SUMS[1:]),
    )


def _before(place: int) -> sql.Composed:
    return (
        sql.SQL("before + ") + _plus(f"exact_{state}" for state in STATES[:place])
        if place
        else sql.Composed([sql.SQL("before")])
    )


def _replace(table: str, key: tuple[str, ...], scope: str, told: tuple[str, ...]) -> sql.Composed:
    same = [
        sql.SQL(
            "coalesce(line.{0}, 0) = coalesce(kept.{0}, 0)" if name == "instance_id" else "line.{0} = kept.{0}"
        ).format(sql.Identifier(name))
        for name in key
    ]
    changes = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in SUMS]
    differs = [sql.SQL("kept.{0} <> EXCLUDED.{0}").format(sql.Identifier(name)) for name in SUMS]
    return sql.SQL(_REPLACE).format(
        table=sql.Identifier(table),
        scope=sql.SQL(scope),
        same=sql.SQL(" AND ").join(same),
        told=_names(told),
        told_of_kept=_joined(sql.Identifier("kept", name) for name in told),
        columns=_names((*key, *SUMS)),
        key=_names(key),
        changes=_joined(changes),
        differs=sql.SQL(" OR ").join(differs),
    )


def _sum_all() -> sql.Composed:
    return _joined([sql.SQL("sum({0}) AS {0}").format(sql.Identifier(name)) for name in SUMS])


def _joined(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _names(names: Iterable[str]) -> sql.Composed:
    return _joined(sql.Identifier(name) for name in names)


def _plus(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(" + ").join([sql.SQL(name) for name in names])


def _to(state: str) -> sql.Identifier:
    return sql.Identifier(f"to_{state}")


def _exact(state: str) -> sql.Identifier:
    return sql.Identifier(f"exact_{state}")


def _share_to(state: str) -> sql.Identifier:
    return sql.Identifier(f"share_to_{state}")
