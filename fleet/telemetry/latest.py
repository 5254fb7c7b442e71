"""What machines do now: latest rows, classified. Tiles, lists, alerts and idle rules read these and never scan samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import QuerySet
from msgspec import Struct

from fleet.inventory.models import GPU, Instance
from fleet.providers.base import InstanceState
from fleet.states import DEFAULTS, Evidence, GpuState, Thresholds, Verdict, classify, worst
from fleet.telemetry.brief import AgentBrief, GpuBrief, HostBrief, LatestBrief, brief_agents, brief_gpus, brief_hosts
from fleet.telemetry.models import Agent, GpuLatest, HostLatest
from fleet.telemetry.pace import scrape_intervals

# A batch on its way, and one that has to be sent again.
REPORT_SLACK = timedelta(seconds=15)
_POWERED_OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})

# Rows of the database, or of them what tiles need (brief.py).
SomeGpu = GPU | GpuBrief
SomeLatest = GpuLatest | LatestBrief
SomeHost = HostLatest | HostBrief
SomeAgent = Agent | AgentBrief


class GpuNow(Struct, frozen=True, gc=False):
    """One GPU. An unsaved `gpu` (no pk) stands for one that the provider lists and no agent has reported."""

    gpu: SomeGpu
    latest: SomeLatest | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class MachineNow:
    instance: Instance
    gpus: list[GpuNow]
    host: SomeHost | None
    agent: SomeAgent | None
    state: GpuState
    # How often its exporters are read, at the slowest; 0 = it has none.
    scrape_seconds: int = 0


def machines_now(
    instances: QuerySet[Instance] | Sequence[Instance], *, now: datetime, brief: bool = False
) -> list[MachineNow]:
    """The machines in the order given, each with its GPUs by index. Five queries at most, however many machines.

    brief: for maps and lists of many machines, without what only the page of one shows.
    """
    machines = list(instances)
    ids = [machine.pk for machine in machines]
    gpus: Mapping[int, Sequence[tuple[SomeGpu, SomeLatest | None]]] = brief_gpus(ids) if brief else _gpus_of(ids)
    hosts: Mapping[int, SomeHost] = brief_hosts(ids) if brief else HostLatest.objects.in_bulk(ids)
    agents: Mapping[int, SomeAgent] = brief_agents(ids) if brief else _agents_of(ids)
    paces = scrape_intervals(ids)
    return [
        _machine_now(machine, gpus.get(pk, ()), hosts.get(pk), agents.get(pk), paces.get(pk, 0), now=now)
        for pk, machine in zip(ids, machines, strict=True)
    ]


def is_powered(instance: Instance) -> bool | None:
    """False where the provider shows the machine as off, None where it cannot tell."""
    if instance.state in _POWERED_OFF:
        return False
    return None if instance.state == InstanceState.UNKNOWN else True


def limits_for(agent: SomeAgent | None, scrape_seconds: int = 0) -> Thresholds:
    """An agent that was told to read or report seldom is not silent in between, nor is an exporter that is read seldom."""
    agent_seconds = agent.interval_seconds + agent.report_seconds if agent else 0
    expected = timedelta(seconds=max(agent_seconds, scrape_seconds)) + REPORT_SLACK
    return DEFAULTS if expected <= DEFAULTS.stale_after else replace(DEFAULTS, stale_after=expected)


def classify_latest(
    *,
    latest: SomeLatest | None,
    host: SomeHost | None,
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


def _agents_of(instance_ids: Iterable[int]) -> dict[int, Agent]:
    return {agent.instance_id: agent for agent in Agent.objects.filter(instance_id__in=instance_ids)}


def _gpus_of(instance_ids: Iterable[int]) -> dict[int, list[tuple[SomeGpu, SomeLatest | None]]]:
    found: dict[int, list[tuple[SomeGpu, SomeLatest | None]]] = defaultdict(list)
    rows = GPU.objects.filter(instance_id__in=instance_ids, removed_at=None).select_related("latest")
    for gpu in rows.order_by("instance_id", "index", "pk"):
        found[gpu.instance_id].append((gpu, getattr(gpu, "latest", None)))
    return found


def _machine_now(
    instance: Instance,
    gpus: Sequence[tuple[SomeGpu, SomeLatest | None]],
    host: SomeHost | None,
    agent: SomeAgent | None,
    scrape_seconds: int,
    *,
    now: datetime,
) -> MachineNow:
    powered, limits = is_powered(instance), limits_for(agent, scrape_seconds)
    tiles = [
        GpuNow(gpu, latest, classify_latest(latest=latest, host=host, powered=powered, now=now, limits=limits))
        for gpu, latest in _measured(gpus)
    ]
    unseen = classify_latest(latest=None, host=host, powered=powered, now=now, limits=limits)
    tiles += (GpuNow(gpu, None, unseen) for gpu in _missing(instance, [gpu for gpu, _latest in gpus]))
    return MachineNow(instance, tiles, host, agent, _state_of(tiles, powered), scrape_seconds)


def _state_of(tiles: list[GpuNow], powered: bool | None) -> GpuState:
    if not tiles and powered is False:
        return GpuState.STOPPED
    return worst([tile.verdict.state for tile in tiles])


def _measured(gpus: Sequence[tuple[SomeGpu, SomeLatest | None]]) -> list[tuple[SomeGpu, SomeLatest | None]]:
    """A card that is cut into MIG instances reports no utilization of its own: its instances stand for it."""
    parents = {gpu.mig_parent_uuid for gpu, _latest in gpus if gpu.mig_parent_uuid}
    return [(gpu, latest) for gpu, latest in gpus if gpu.uuid not in parents]


def _missing(instance: Instance, gpus: Sequence[SomeGpu]) -> list[GPU]:
    """The GPUs that are paid for and not reported, so that they are shown as unknown and not left out."""
    cards = {gpu.mig_parent_uuid or gpu.uuid for gpu in gpus}
    absent = (instance.gpu_count or 0) - len(cards)
    taken = {gpu.index for gpu in gpus if not gpu.mig_parent_uuid}
    free = [index for index in range(len(taken) + max(absent, 0)) if index not in taken]
    return [GPU(instance=instance, index=index, name=instance.gpu_model) for index in free[: max(absent, 0)]]
