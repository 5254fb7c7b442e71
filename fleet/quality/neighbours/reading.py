"""Reads the hours of many machines out of the rollups, in two queries however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from fleet.inventory.models import Instance
from fleet.providers.base import Tenancy
from fleet.quality.neighbours.hours import Hour
from fleet.quality.neighbours.score import Host

SHARED = frozenset({Tenancy.DEDICATED_GPU, Tenancy.COMMUNITY_HOST, Tenancy.FRACTION})
# Every reason for lower clocks but idleness (0x1), clocks that the renter set (0x2) and a display's (0x100): NVML's bits.
OWN_REASONS = ~0x103 & 0xFFFF_FFFF
OWN_SCOPES = ("cgroup", "process")

# A card that is cut has its readings in its instances and its own row: rates and memory are compared with themselves alone.
_HOURS = """\
WITH card AS (
    SELECT gpu.instance_id, rolled.bucket_at, avg(rolled.utilization_percent_avg) AS utilization, sum(rolled.power_watts_avg) AS power,
        sum(rolled.memory_used_bytes_avg) AS memory, sum(rolled.process_count_avg) AS processes, avg(rolled.sm_clock_mhz_avg) AS clock,
        bool_or(rolled.throttle_reasons & %(own_reasons)s <> 0) AS throttled,
        sum(coalesce(rolled.pcie_rx_bytes_per_second_avg + rolled.pcie_tx_bytes_per_second_avg,
            rolled.pcie_rx_bytes_per_second_avg, rolled.pcie_tx_bytes_per_second_avg)) AS pcie
    FROM gpu_rollup_1h rolled JOIN fleet_gpu gpu ON gpu.id = rolled.gpu_id
    WHERE gpu.instance_id = ANY(%(instance_ids)s) AND rolled.bucket_at >= %(since)s AND rolled.bucket_at < %(until)s
    GROUP BY gpu.instance_id, rolled.bucket_at
)
SELECT host.instance_id, host.bucket_at, host.coverage, card.utilization, card.power, card.memory, card.processes, card.clock, card.throttled,
    card.pcie, host.cpu_percent_avg, host.cpu_iowait_percent_avg, host.pressure_cpu_percent_avg, host.pressure_io_percent_avg,
    host.disk_read_bytes_per_second_avg + host.disk_write_bytes_per_second_avg,
    greatest(host.disk_read_latency_seconds_avg, host.disk_write_latency_seconds_avg),
    host.network_rx_bytes_per_second_avg + host.network_tx_bytes_per_second_avg
FROM host_rollup_1h host LEFT JOIN card USING (instance_id, bucket_at)
WHERE host.instance_id = ANY(%(instance_ids)s) AND host.bucket_at >= %(since)s AND host.bucket_at < %(until)s
ORDER BY host.instance_id, host.bucket_at
"""
_SCOPES = "SELECT instance_id, detail ->> 'disk_scope' FROM host_latest WHERE instance_id = ANY(%s)"


def is_shared(tenancy: str) -> bool | None:
    """None where the provider does not say: nobody is blamed then."""
    known = Tenancy(tenancy)
    return None if known is Tenancy.UNKNOWN else known in SHARED


def hours_of(instance_ids: Sequence[int], *, since: datetime, until: datetime) -> Mapping[int, list[Hour]]:
    """Machine id -> its hours of [since, until) in order. A machine that said nothing is not in it."""
    found: dict[int, list[Hour]] = defaultdict(list)
    given: dict[str, Any] = {
        "instance_ids": list(instance_ids),
        "since": since,
        "until": until,
        "own_reasons": OWN_REASONS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, given)
        for instance_id, *values in cursor:
            found[instance_id].append(Hour(*values))
    return found


def hosts_of(instances: Sequence[Instance]) -> Mapping[int, Host]:
    with connection.cursor() as cursor:
        cursor.execute(_SCOPES, [[instance.pk for instance in instances]])
        scopes = dict(cursor.fetchall())
    return {
        instance.pk: Host(is_shared(instance.tenancy), disk_is_own=scopes.get(instance.pk) in OWN_SCOPES)
        for instance in instances
    }
