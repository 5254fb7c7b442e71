"""The SQL behind a snapshot: one query each, for all machines of a team together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import connection
from msgspec import Struct

from fleet.alerts.rules.xids import XIDS
from fleet.alerts.snapshot import Filesystem, Happened, PriceChange
from fleet.providers.base import Billing

# As far back as a rule may be told to look.
EVENTS_FOR = timedelta(days=1)
PRICES_FOR = timedelta(days=7)
# Long enough that one checkpoint is no trend, short enough to notice a new one.
TREND_OVER = timedelta(hours=6)
TREND_ROWS = 12
TREND_FROM_SHARE = 0.6
_ROOT = "/"


class GpuRow(Struct, frozen=True, gc=False):
    """A GPU with its latest row. `sampled`: seconds since the epoch, which are read three times as fast as moments."""

    pk: int
    uuid: str
    index: int
    name: str
    mig_parent_uuid: str
    sampled: float | None
    lost: bool | None
    utilization_percent: float | None
    sm_activity: float | None
    power_watts: float | None
    power_limit_watts: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    throttle_reasons: int | None
    process_count: int | None
    ecc_uncorrected: int | None
    remap_pending: bool | None
    remap_failed: bool | None


class HostRow(Struct, frozen=True, gc=False):
    sampled_at: datetime
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    cpu_iowait_percent: float | None
    pressure_io_percent: float | None
    filesystems: tuple[Filesystem, ...]


_GPUS = """\
SELECT gpu.instance_id, gpu.id, gpu.uuid, gpu.index, gpu.name, gpu.mig_parent_uuid, extract(epoch FROM latest.sampled_at)::float8,
    latest.lost, latest.utilization_percent, latest.sm_activity, latest.power_watts, latest.power_limit_watts,
    latest.memory_used_bytes, coalesce(latest.memory_total_bytes, gpu.memory_total_bytes), latest.temperature_celsius,
    latest.throttle_reasons, latest.process_count, (latest.health ->> 'ecc_uncorrected')::numeric::int8,
    (latest.health ->> 'remapped_rows_pending')::bool, (latest.health ->> 'remapped_rows_failed')::bool
FROM fleet_gpu gpu LEFT JOIN gpu_latest latest ON latest.gpu_id = gpu.id
WHERE gpu.instance_id = ANY(%s) AND gpu.removed_at IS NULL ORDER BY gpu.instance_id, gpu.index, gpu.id
"""
_HOSTS = """\
SELECT instance_id, sampled_at, memory_used_bytes, memory_total_bytes, cpu_iowait_percent, pressure_io_percent,
    filesystem_used_bytes, filesystem_total_bytes, (detail -> 'filesystems')::text
FROM host_latest WHERE instance_id = ANY(%s)
"""
_HAPPENED = """\
SELECT instance_id, kind, CASE WHEN code = ANY(%s) THEN code END AS known, gpu_id, max(at), count(*), (array_agg(code ORDER BY at DESC))[1]
FROM fleet_machineevent WHERE instance_id = ANY(%s) AND at > %s AND kind = 'xid' GROUP BY instance_id, kind, known, gpu_id
"""
# A price is compared with the one before it of the same kind: what a stopped machine costs is no change of price.
_PRICES = """\
SELECT DISTINCT ON (o.instance_id) o.instance_id, o.seen_at, p.price_per_hour, o.price_per_hour
FROM fleet_observation o CROSS JOIN LATERAL (
    SELECT price_per_hour, currency FROM fleet_observation b WHERE b.instance_id = o.instance_id AND b.seen_at < o.seen_at
        AND b.billing = %(full)s AND b.price_per_hour IS NOT NULL ORDER BY b.seen_at DESC LIMIT 1) p
WHERE o.instance_id = ANY(%(ids)s) AND o.seen_at > %(since)s AND o.billing = %(full)s AND o.price_per_hour IS NOT NULL
    AND p.price_per_hour <> o.price_per_hour AND p.currency = o.currency
ORDER BY o.instance_id, o.seen_at DESC
"""
_GROWTH = """\
SELECT instance_id, regr_slope(filesystem_used_bytes_avg::float8, extract(epoch FROM bucket_at)::float8)
FROM host_rollup_5min WHERE instance_id = ANY(%s) AND bucket_at > %s AND filesystem_used_bytes_avg IS NOT NULL
GROUP BY instance_id HAVING count(*) >= %s
"""


def gpus(ids: Sequence[int]) -> Mapping[int, Sequence[GpuRow]]:
    found: dict[int, list[GpuRow]] = defaultdict(list)
    for instance_id, *values in _fetch(_GPUS, [list(ids)]):
        found[instance_id].append(GpuRow(*values))
    return found


def hosts(ids: Sequence[int]) -> Mapping[int, HostRow]:
    found = {}
    for pk, sampled_at, used, total, iowait, pressure, root_used, root_total, listed in _fetch(_HOSTS, [list(ids)]):
        filesystems = _filesystems(listed, root_used, root_total)
        found[pk] = HostRow(sampled_at, used, total, iowait, pressure, filesystems)
    return found


def happened(ids: Sequence[int], now: datetime) -> Mapping[int, tuple[Happened, ...]]:
    """Codes that nobody knows are one of a GPU: a machine that makes codes up must not make as many signals."""
    found: dict[int, tuple[Happened, ...]] = {}
    for instance_id, *event in _fetch(_HAPPENED, [list(XIDS), list(ids), now - EVENTS_FOR]):
        found[instance_id] = (*found.get(instance_id, ()), Happened(*event))
    return found


def price_changes(ids: Sequence[int], now: datetime) -> Mapping[int, PriceChange]:
    """The last change of each machine's price, where there was one lately."""
    values = {"ids": list(ids), "since": now - PRICES_FOR, "full": Billing.FULL.value}
    return {pk: PriceChange(at, before, after) for pk, at, before, after in _fetch(_PRICES, values)}


def filling(found: Mapping[int, HostRow]) -> list[int]:
    """Machines whose root file system is full enough for its trend to matter."""
    return [
        pk
        for pk, host in found.items()
        for filesystem in host.filesystems
        if filesystem.mount == _ROOT and filesystem.used_bytes >= TREND_FROM_SHARE * filesystem.total_bytes
    ]


def growth(ids: Sequence[int], now: datetime) -> Mapping[int, float]:
    """Bytes a second by which the root file system grew over the last hours. Least squares over rollups of 5 minutes; an hour of them at least."""
    rows = _fetch(_GROWTH, [list(ids), now - TREND_OVER, TREND_ROWS])
    return {pk: slope for pk, slope in rows if slope is not None}


def _filesystems(listed: str | None, root_used: int | None, root_total: int | None) -> tuple[Filesystem, ...]:
    """The list that an agent sent, else the root alone. An entry without figures is left out."""
    entries = msgspec.json.decode(listed, type=list[dict[str, object]]) if listed and listed != "null" else []
    found = [
        Filesystem(mount, used, total)
        for entry in entries
        if isinstance(mount := entry.get("mount"), str)
        and isinstance(used := entry.get("used_bytes"), int)
        and isinstance(total := entry.get("total_bytes"), int)
    ]
    if root_used is not None and root_total and not any(filesystem.mount == _ROOT for filesystem in found):
        found.insert(0, Filesystem(_ROOT, root_used, root_total))
    return tuple(found)


def _fetch(query: str, values: list[Any] | dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        rows: list[Any] = cursor.fetchall()
        return rows
