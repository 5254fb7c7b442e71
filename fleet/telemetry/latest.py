"""What machines do now: latest rows, classified. Tiles, lists, alerts and idle rules read these and never scan samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import QuerySet

from fleet.inventory.models import GPU, Instance
from fleet.providers.base import InstanceState
from fleet.states import DEFAULTS, Evidence, GpuState, Thresholds, Verdict, classify, worst
from fleet.telemetry.models import Agent, GpuLatest, HostLatest
from fleet.telemetry.pace import scrape_intervals

# A batch on its way, and one that has to be sent again.
REPORT_SLACK = timedelta(seconds=15)
_POWERED_OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})

# Loading all columns of 8,000 GPUs takes twice as long as loading these.
_DECISIVE = (
    "sampled_at",
    "lost",
    "utilization_percent",
    "sm_activity",
    "power_watts",
    "power_limit_watts",
    "memory_used_bytes",
    "memory_total_bytes",
    "process_count",
    "idle_since",
)
GPU_BRIEF = (
    "instance_id",
    "uuid",
    "index",
    "name",
    "memory_total_bytes",
    "mig_parent_uuid",
    *(f"latest__{name}" for name in _DECISIVE),
)
HOST_BRIEF = ("sampled_at", "cpu_iowait_percent", "pressure_io_percent")


@dataclass(frozen=True, slots=True)
class GpuNow:
    """One GPU. An unsaved `gpu` (no pk) stands for one that the provider lists and no agent has reported."""

    gpu: GPU
    latest: GpuLatest | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class MachineNow:
    instance: Instance
    gpus: list[GpuNow]
    host: HostLatest | None
    agent: Agent | None
    state: GpuState
    # How often its exporters are read, at the slowest; 0 = it has none.
    scrape_seconds: int = 0


def machines_now(
    instances: QuerySet[Instance] | Sequence[Instance], *, now: datetime, brief: bool = False
) -> list[MachineNow]:
    """The machines in the order given, each with its GPUs by index. Five queries at most, however many machines.

    brief: for maps and lists of many machines, without what only the page of one shows; to read that costs a query a row.
    """
    machines = list(instances)
    ids = [machine.pk for machine in machines]
    gpus = _gpus_of(ids, brief=brief)
    hosts = (HostLatest.objects.only(*HOST_BRIEF) if brief else HostLatest.objects).in_bulk(ids)
    agents = {agent.instance_id: agent for agent in Agent.objects.filter(instance_id__in=ids)}
    paces = scrape_intervals(ids)
    return [
        _machine_now(machine, gpus.get(pk, []), hosts.get(pk), agents.get(pk), paces.get(pk, 0), now=now)
        for pk, machine in zip(ids, machines, strict=True)
    ]


def is_powered(instance: Instance) -> bool | None:
    """False where the provider shows the machine as off, None where it cannot tell."""
    if instance.state in _POWERED_OFF:
        return False
    return None if instance.state == InstanceState.UNKNOWN else True


def limits_for(agent: Agent | None, scrape_seconds: int = 0) -> Thresholds:
    """An agent that was told to read or report seldom is not silent in between, nor is an exporter that is read seldom."""
    agent_seconds = agent.interval_seconds + agent.report_seconds if agent else 0
    expected = timedelta(seconds=max(agent_seconds, scrape_seconds)) + REPORT_SLACK
    return DEFAULTS if expected <= DEFAULTS.stale_after else replace(DEFAULTS, stale_after=expected)


def classify_latest(
    *,
    latest: GpuLatest | None,
    host: HostLatest | None,
    powered: bool | None,
    now: datetime,
    limits: Thresholds = DEFAULTS,
) -> Verdict:
    """The state of one GPU by its latest row. The host's readings count only while they are as fresh as the GPU's must be."""
    if latest is None:
        return classify(Evidence(now=now, powered=powered))
    return classify(
        Evidence(
            now=now,
            powered=powered,
            sampled_at=latest.sampled_at,
            lost=latest.lost,
            utilization_percent=latest.utilization_percent,
            sm_activity=latest.sm_activity,
            power_watts=latest.power_watts,
            power_limit_watts=latest.power_limit_watts,
            memory_used_bytes=latest.memory_used_bytes,
            process_count=latest.process_count,
            host_sampled_at=host.sampled_at if host else None,
            cpu_iowait_percent=host.cpu_iowait_percent if host else None,
            pressure_io_percent=host.pressure_io_percent if host else None,
        ),
        limits,
    )


def _gpus_of(instance_ids: Iterable[int], *, brief: bool) -> dict[int, list[GPU]]:
    found: dict[int, list[GPU]] = defaultdict(list)
    rows = GPU.objects.filter(instance_id__in=instance_ids, removed_at=None).select_related("latest")
    if brief:
        rows = rows.only(*GPU_BRIEF)
    for gpu in rows.order_by("instance_id", "index", "pk"):
        found[gpu.instance_id].append(gpu)
    return found


def _machine_now(
    instance: Instance,
    gpus: list[GPU],
    host: HostLatest | None,
    agent: Agent | None,
    scrape_seconds: int,
    *,
    now: datetime,
) -> MachineNow:
    powered, limits = is_powered(instance), limits_for(agent, scrape_seconds)
    tiles = [_gpu_now(gpu, host, powered, now, limits) for gpu in [*_measured(gpus), *_missing(instance, gpus)]]
    return MachineNow(instance, tiles, host, agent, _state_of(tiles, powered), scrape_seconds)


def _gpu_now(gpu: GPU, host: HostLatest | None, powered: bool | None, now: datetime, limits: Thresholds) -> GpuNow:
    latest = getattr(gpu, "latest", None) if gpu.pk else None
    return GpuNow(gpu, latest, classify_latest(latest=latest, host=host, powered=powered, now=now, limits=limits))


def _state_of(tiles: list[GpuNow], powered: bool | None) -> GpuState:
    if not tiles and powered is False:
        return GpuState.STOPPED
    return worst([tile.verdict.state for tile in tiles])


def _measured(gpus: list[GPU]) -> list[GPU]:
    """A card that is cut into MIG instances reports no utilization of its own: its instances stand for it."""
    parents = {gpu.mig_parent_uuid for gpu in gpus if gpu.mig_parent_uuid}
    return [gpu for gpu in gpus if gpu.uuid not in parents]


def _missing(instance: Instance, gpus: list[GPU]) -> list[GPU]:
    """The GPUs that are paid for and not reported, so that they are shown as unknown and not left out."""
    cards = {gpu.mig_parent_uuid or gpu.uuid for gpu in gpus}
    absent = (instance.gpu_count or 0) - len(cards)
    taken = {gpu.index for gpu in gpus if not gpu.mig_parent_uuid}
    free = [index for index in range(len(taken) + max(absent, 0)) if index not in taken]
    return [GPU(instance=instance, index=index, name=instance.gpu_model) for index in free[: max(absent, 0)]]
