"""How often a rule would have fired in the last 30 days, before it is switched on: counted in what history there is.

Readings are looked at by the hour (rollups), so that several firings of one machine within an hour, or in hours that follow
each other, count as one. What nothing is kept of cannot be counted, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection, transaction

from fleet.alerts.rules import rule_of
from fleet.alerts.rules.base import RuleKind
from fleet.alerts.rules.throttling import HW_POWER_BRAKE, HW_THERMAL, SW_THERMAL
from fleet.providers.base import Billing
from fleet.teams.models import Team

SPAN = timedelta(days=30)
HOUR = timedelta(hours=1)
# Somebody waits for it, and everybody else for the database.
TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True)
class Preview:
    """times: firings in [since, until), None where nobody can say, for the reason `why` ("no_history", "other_store", "too_long").

    `since` is later than 30 days ago where history does not reach back so far. counted: hours, events or changes.
    """

    kind: str
    until: datetime
    times: int | None = None
    machines: int = 0
    since: datetime | None = None
    counted: str = ""
    why: str = ""


# A reading counts as beyond its limit by the statistic that lasts about as long as the rule asks: of an hour, the largest
# value is a moment, the 95th percentile three minutes, and the mean about half of it.
def statistic_for(for_seconds: int) -> str:
    if for_seconds < 180:
        return "max"
    return "p95" if for_seconds < 1_800 else "avg"


_GPU_HITS = """\
SELECT DISTINCT g.instance_id, r.bucket_at AS at FROM gpu_rollup_1h r JOIN fleet_gpu g ON g.id = r.gpu_id
WHERE g.instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s) AND r.bucket_at >= %(since)s AND {condition}
"""
# Every GPU of the machine said nothing for that long while nobody had switched it off.
_SILENT_HITS = """\
SELECT g.instance_id, r.bucket_at AS at FROM gpu_rollup_1h r JOIN fleet_gpu g ON g.id = r.gpu_id
WHERE g.instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s) AND r.bucket_at >= %(since)s
GROUP BY g.instance_id, r.bucket_at HAVING min(r.unknown_seconds) > %(seconds)s
"""
_HOST_HITS = """\
SELECT r.instance_id, r.bucket_at AS at FROM host_rollup_1h r JOIN host_latest h ON h.instance_id = r.instance_id
WHERE r.instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s) AND r.bucket_at >= %(since)s AND {condition}
"""
_EVENT_HITS = """\
SELECT instance_id, at FROM fleet_machineevent
WHERE instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s) AND at >= %(since)s AND kind = ANY(%(kinds)s)
"""
_PRICE_HITS = """\
SELECT instance_id, seen_at AS at FROM (
    SELECT instance_id, seen_at, price_per_hour AS after,
        lag(price_per_hour) OVER (PARTITION BY instance_id, currency ORDER BY seen_at) AS before
    FROM fleet_observation WHERE instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s)
        AND seen_at >= %(since)s AND billing = %(full)s AND price_per_hour IS NOT NULL) seen
WHERE before > 0 AND 100 * abs(after - before) / before >= %(percent)s AND after <> before
"""
# The first of what a rule looks at: before it, nobody knows.
_FIRST: Mapping[str, str] = {
    "gpu": """\
SELECT min(f.at) FROM fleet_gpu g JOIN fleet_instance i ON i.id = g.instance_id, LATERAL (
    SELECT bucket_at AS at FROM gpu_rollup_1h r WHERE r.gpu_id = g.id AND r.bucket_at >= %(since)s ORDER BY bucket_at LIMIT 1) f
WHERE i.team_id = %(team)s
""",
    "host": """\
SELECT min(f.at) FROM fleet_instance i, LATERAL (
    SELECT bucket_at AS at FROM host_rollup_1h r WHERE r.instance_id = i.id AND r.bucket_at >= %(since)s ORDER BY bucket_at LIMIT 1) f
WHERE i.team_id = %(team)s
""",
    "events": """\
SELECT min(at) FROM (
    SELECT min(enrolled_at) AS at FROM fleet_agent WHERE instance_id IN (SELECT id FROM fleet_instance WHERE team_id = %(team)s)
    UNION ALL SELECT min(f.at) FROM fleet_instance i, LATERAL (
        SELECT at FROM fleet_machineevent e WHERE e.instance_id = i.id ORDER BY at LIMIT 1) f WHERE i.team_id = %(team)s) seen
""",
    # Written where something changed: an old one still says what held.
    "observations": """\
SELECT min(f.at) FROM fleet_instance i, LATERAL (
    SELECT seen_at AS at FROM fleet_observation o WHERE o.instance_id = i.id ORDER BY seen_at LIMIT 1) f
WHERE i.team_id = %(team)s
""",
}
# Runs of hits that are no further apart than `gap`.
_RUNS = """\
SELECT count(*) FILTER (WHERE before IS NULL OR at - before > %(gap)s), count(DISTINCT instance_id) FROM (
    SELECT instance_id, at, lag(at) OVER (PARTITION BY instance_id ORDER BY at) AS before FROM ({hits}) hits) runs
"""
_GPU_CONDITIONS: Mapping[str, str] = {
    "thermal": "(r.temperature_celsius_{statistic} >= %(celsius)s OR r.throttle_reasons & %(thermal_bits)s <> 0)",
    "power": "r.throttle_reasons & %(power_bits)s <> 0",
    "gpu_memory": "100 * r.memory_used_bytes_{statistic} >= %(percent)s * g.memory_total_bytes",
    "stalled": "r.stalled_seconds >= %(for_seconds)s AND r.stalled_seconds > 0",
    "starved": "r.starved_seconds >= %(for_seconds)s AND r.starved_seconds > 0",
}
_HOST_CONDITIONS: Mapping[str, str] = {
    "host_memory": "100 * r.memory_used_bytes_{statistic} >= %(percent)s * h.memory_total_bytes",
    "disk": "100 * r.filesystem_used_bytes_max >= %(percent)s * h.filesystem_total_bytes",
}
_EVENTS: Mapping[str, tuple[str, ...]] = {
    "driver_hung": ("driver_hung", "driver_mismatch"),
    "gpu_lost": ("gpu_lost",),
    "gpu_count": ("gpu_count_changed",),
    "xid": ("xid",),
    "ecc": ("ecc_uncorrected", "row_remap_failure"),
}


def preview_rule(
    *,
    team: Team,
    kind: str,
    now: datetime,
    thresholds: Mapping[str, float] | None = None,
    for_seconds: int | None = None,
) -> Preview:
    """With these thresholds, which are taken as checked (choices.update_rule). Raises KeyError for a kind that does not exist."""
    rule = rule_of(kind)
    if rule is None:
        raise KeyError(kind)
    if not rule.history:
        return Preview(kind, now, why="no_history")
    readings = rule.history in {"gpu", "host"}
    if readings and settings.TELEMETRY_STORE != "postgresql":
        return Preview(kind, now, why="other_store")
    counted = "hours" if readings else "events" if rule.history == "events" else "changes"
    lasting = rule.for_seconds if for_seconds is None else for_seconds
    since = None
    try:
        since = _reaches_back_to(team, rule, now)
        if since is None:
            return Preview(kind, now, why="no_history")
        times, machines = _count(team, rule, rule.limits(thresholds), lasting, since)
    except OperationalError:
        return Preview(kind, now, since=since, counted=counted, why="too_long")
    return Preview(kind, now, times, machines, since, counted)


def _reaches_back_to(team: Team, rule: RuleKind, now: datetime) -> datetime | None:
    """When the first of what the rule looks at was written, if that is less than 30 days ago; None: there is nothing. Raises OperationalError."""
    (first,) = _ask(_FIRST[rule.history], {"team": team.pk, "since": now - SPAN})
    return None if first is None else max(first, now - SPAN)


def _ask(query: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The one row of the answer. Raises OperationalError when it takes too long."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(TIMEOUT_MS)])
        cursor.execute(query, values)
        row: tuple[Any, ...] = cursor.fetchone()
        cursor.execute("SELECT set_config('statement_timeout', '0', true)")
    return row


def _count(
    team: Team, rule: RuleKind, limits: Mapping[str, float], for_seconds: int, since: datetime
) -> tuple[int, int]:
    """Raises OperationalError when it takes too long."""
    hits = _hits(rule, for_seconds)
    values: dict[str, Any] = {
        **limits,
        "team": team.pk,
        "since": since,
        # An hour holds no more than itself.
        "for_seconds": min(for_seconds, 3_600),
        "gap": timedelta(minutes=limits["quiet_minutes"]) if "quiet_minutes" in limits else HOUR,
        "kinds": list(_EVENTS.get(rule.kind, ())),
        "full": Billing.FULL.value,
        "thermal_bits": SW_THERMAL | HW_THERMAL,
        "power_bits": HW_POWER_BRAKE,
    }
    times, machines = _ask(_RUNS.format(hits=hits), values)
    return times, machines


def _hits(rule: RuleKind, for_seconds: int) -> str:
    """The query of (instance_id, at); only our own words are put into it."""
    statistic = statistic_for(for_seconds)
    if rule.kind == "agent_silent":
        return _SILENT_HITS
    if rule.kind in _GPU_CONDITIONS:
        return _GPU_HITS.format(condition=_GPU_CONDITIONS[rule.kind].format(statistic=statistic))
    if rule.kind in _HOST_CONDITIONS:
        return _HOST_HITS.format(condition=_HOST_CONDITIONS[rule.kind].format(statistic=statistic))
    return _EVENT_HITS if rule.history == "events" else _PRICE_HITS
