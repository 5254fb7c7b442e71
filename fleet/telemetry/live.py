"""What browsers hear of machines: one message per machine and commit. The same shape goes over the socket and over polling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from fleet.inventory.models import Instance
from fleet.teams.models import Team
from fleet.telemetry.latest import GpuNow, MachineNow, machines_now
from fleet.telemetry.models import Agent, GpuLatest, HostLatest
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS, READINGS_FROM, Rows
from fleet.telemetry.state_codes import STATES_BY_CODE

# Replayed samples are history: a page reads them as a series.
OLDEST_SECONDS = 120.0

Message = dict[str, Any]


_CHANNEL = "rackrent:live:"


def channel_name(instance_id: int) -> str:
    """The broker's channel for everybody who watches this machine."""
    return f"{_CHANNEL}{instance_id}"


def machine_of_channel(name: bytes) -> int:
    return int(name.removeprefix(_CHANNEL.encode()))


def machines_of(team: Team) -> QuerySet[Instance]:
    return Instance.objects.filter(team=team, gone_at=None)


def sample_message(instance_id: int, batches: Iterable[Rows], *, now: float) -> Message | None:
    """None when every sample is too old to be news."""
    samples: dict[float, Message] = {}
    for rows in batches:
        for row in rows.hosts:
            if now - row[1] <= OLDEST_SECONDS:
                _sample_at(samples, row[1])["host"] = dict(zip(HOST_COLUMNS, row[READINGS_FROM:], strict=True))
        for row in rows.gpus:
            if now - row[1] <= OLDEST_SECONDS:
                reading = dict(zip(GPU_COLUMNS, row[READINGS_FROM:], strict=True), state=STATES_BY_CODE[row[2]].value)
                _sample_at(samples, row[1])["gpus"][str(row[0])] = reading
    if not samples:
        return None
    ordered = [samples[at] for at in sorted(samples)]
    return {"type": "sample", "machine": instance_id, "at": now, "samples": ordered}


def _sample_at(samples: dict[float, Message], at: float) -> Message:
    return samples.setdefault(at, {"at": at, "host": None, "gpus": {}})


def heartbeat_message(instance_id: int, *, nvml: str, now: float) -> Message:
    return {"type": "heartbeat", "machine": instance_id, "at": now, "nvml": nvml}


def gap_message(instance_id: int | None, *, now: float) -> Message:
    """Something of this machine, or of all that the page shows, was not told: it is to be read as a series."""
    return {"type": "gap", "machine": instance_id, "at": now}


def news_since(*, machines: QuerySet[Instance] | Sequence[Instance], since: datetime, now: datetime) -> list[Message]:
    """For browsers that cannot hold a socket open: what the latest rows say that is newer than `since`."""
    messages: list[Message] = []
    for machine in machines_now(machines, now=now):
        message = _latest_message(machine, since)
        if message is not None:
            messages.append(message)
        agent = machine.agent
        if isinstance(agent, Agent) and agent.heartbeat_at is not None and agent.heartbeat_at > since:
            at = agent.heartbeat_at.timestamp()
            messages.append(heartbeat_message(machine.instance.pk, nvml=agent.nvml_state, now=at))
    return messages


def _latest_message(machine: MachineNow, since: datetime) -> Message | None:
    samples: dict[float, Message] = {}
    received = since
    for gpu in machine.gpus:
        if isinstance(gpu.latest, GpuLatest) and gpu.latest.received_at > since:
            received = max(received, gpu.latest.received_at)
            _sample_at(samples, gpu.latest.sampled_at.timestamp())["gpus"][str(gpu.gpu.pk)] = _gpu_reading(gpu)
    host = machine.host
    if isinstance(host, HostLatest) and host.received_at > since:
        received = max(received, host.received_at)
        _sample_at(samples, host.sampled_at.timestamp())["host"] = _host_reading(host)
    if not samples:
        return None
    ordered = [samples[at] for at in sorted(samples)]
    return {"type": "sample", "machine": machine.instance.pk, "at": received.timestamp(), "samples": ordered}


def _gpu_reading(gpu: GpuNow) -> Message:
    return {**{name: getattr(gpu.latest, name) for name in GPU_COLUMNS}, "state": gpu.verdict.state.value}


def _host_reading(host: HostLatest) -> Message:
    return {name: getattr(host, name) for name in HOST_COLUMNS}
