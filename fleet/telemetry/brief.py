"""What maps and lists of many machines read of each GPU: plain rows, because ten thousand model instances take longer than all the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import connection
from msgspec import Struct

from fleet.telemetry.models import Agent, HostLatest


class GpuBrief(Struct, frozen=True, gc=False):
    """Of inventory's GPU what a tile needs, under the same names."""

    pk: int
    uuid: str
    index: int
    name: str
    memory_total_bytes: int | None
    mig_parent_uuid: str


class LatestBrief(Struct, frozen=True, gc=False):
    """Of a GPU's latest row what decides its state, under the same names."""

    sampled_at: datetime
    idle_since: datetime | None
    lost: bool
    utilization_percent: float | None
    sm_activity: float | None
    power_watts: float | None
    power_limit_watts: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    process_count: int | None


class HostBrief(Struct, frozen=True, gc=False):
    """Of a machine's latest row what decides whether its GPUs wait, under the same names."""

    sampled_at: datetime
    cpu_iowait_percent: float | None
    pressure_io_percent: float | None


class AgentBrief(Struct, frozen=True, gc=False):
    """Of a machine's agent what lists and the first steps say of it, under the same names."""

    hostname: str
    version: str
    nvml_state: str
    nvml_detail: str
    interval_seconds: int
    report_seconds: int


# Moments as numbers: turning text into aware datetimes would be a third of the reading.
_GPUS = """\
SELECT gpu.instance_id, gpu.id, gpu.uuid, gpu.index, gpu.name, gpu.memory_total_bytes, gpu.mig_parent_uuid,
    extract(epoch FROM latest.sampled_at)::float8, extract(epoch FROM latest.idle_since)::float8,
    latest.lost, latest.utilization_percent, latest.sm_activity, latest.power_watts, latest.power_limit_watts,
    latest.memory_used_bytes, latest.memory_total_bytes, latest.process_count
FROM fleet_gpu gpu LEFT JOIN gpu_latest latest ON latest.gpu_id = gpu.id
WHERE gpu.instance_id = ANY(%s) AND gpu.removed_at IS NULL ORDER BY gpu.instance_id, gpu.index, gpu.id
"""
Pair = tuple[GpuBrief, LatestBrief | None]


def brief_gpus(instance_ids: Sequence[int]) -> dict[int, list[Pair]]:
    """Machine id -> its GPUs by index, each with its latest row. One query."""
    found: dict[int, list[Pair]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_GPUS, [list(instance_ids)])
        rows = cursor.fetchall()
    for instance_id, pk, uuid, index, name, memory, parent, sampled, idle, *rest in rows:
        latest = None
        if sampled is not None:
            latest = LatestBrief(_moment(sampled), None if idle is None else _moment(idle), *rest)
        found[instance_id].append((GpuBrief(pk, uuid, index, name, memory, parent), latest))
    return found


def brief_hosts(instance_ids: Sequence[int]) -> dict[int, HostBrief]:
    rows = HostLatest.objects.filter(instance_id__in=instance_ids)
    columns = rows.values_list("instance_id", *HostBrief.__struct_fields__)
    return {instance_id: HostBrief(*values) for instance_id, *values in columns}


def brief_agents(instance_ids: Sequence[int]) -> dict[int, AgentBrief]:
    rows = Agent.objects.filter(instance_id__in=instance_ids).values_list("instance_id", *AgentBrief.__struct_fields__)
    return {instance_id: AgentBrief(*values) for instance_id, *values in rows}


def _moment(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)
