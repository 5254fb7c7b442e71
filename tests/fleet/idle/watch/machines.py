"""Machines whose past is written as ingest would have: samples, latest readings, rollups as far as they would be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.inventory.models import GPU, Instance
from fleet.states import DEFAULTS, shows_work
from fleet.telemetry.models import Agent, GpuLatest, GpuSample, HostLatest, HostSample
from fleet.telemetry.rollups.columns import FIVE_MINUTES, ROLLUPS
from fleet.telemetry.rollups.models import RollupProgress
from fleet.telemetry.rollups.roll import roll_up

# Some samples lie behind the last rollup that is made by now.
NOW = datetime(2026, 11, 30, 12, 3, 20, tzinfo=UTC)
PAST = timedelta(minutes=75)
STEP = timedelta(seconds=30)
GIB = 1 << 30
REST = {
    "utilization_percent": 0.0,
    "sm_activity": 0.0,
    "power_watts": 72.0,
    "power_limit_watts": 700.0,
    "memory_used_bytes": 31 * GIB,
    "process_count": 1,
}
QUIET = {
    "cpu_percent": 2.0,
    "disk_read_bytes_per_second": 0.0,
    "disk_write_bytes_per_second": 9_000.0,
    "network_rx_bytes_per_second": 800.0,
    "network_tx_bytes_per_second": 700.0,
    "ssh_sessions": 0,
    "jupyter_busy_kernels": 0,
}
Change = Callable[[datetime], dict[str, Any] | None]


def ago(**passed: float) -> datetime:
    return NOW - timedelta(**passed)


def between(first: float, last: float, **values: Any) -> Change:
    """`values` from `first` until `last` minutes ago."""
    return lambda at: values if ago(minutes=first) <= at <= ago(minutes=last) else {}


def always(**values: Any) -> Change:
    return lambda _at: values


def silent(first: float, last: float = 0.0) -> Change:
    """No samples from `first` until `last` minutes ago."""
    return lambda at: None if ago(minutes=first) <= at <= ago(minutes=last) else {}


@dataclass
class History:
    """What a machine's agent sent in the last 75 minutes. `gpu`: changes of each GPU by index; None as key: of all; None as change: no sample."""

    gpu: dict[int | None, Change] = field(default_factory=dict)
    host: Change = field(default=always())
    step: timedelta = STEP

    def samples(self, instance: Instance) -> tuple[list[Any], list[Any]]:
        gpus, hosts = [], []
        for at in moments(self.step):
            host = self.host(at)
            if host is not None:
                hosts.append((at, {**QUIET, **host}))
            for gpu in instance.gpus.all():
                change = self.gpu.get(gpu.index, self.gpu.get(None, always()))(at)
                if change is not None:
                    gpus.append((gpu, at, {**REST, **change}))
        return gpus, hosts

    def write(self, instance: Instance) -> None:
        gpus, hosts = self.samples(instance)
        GpuSample.objects.bulk_create(GpuSample(gpu=gpu, sampled_at=at, **values) for gpu, at, values in gpus)
        HostSample.objects.bulk_create(HostSample(instance=instance, sampled_at=at, **values) for at, values in hosts)
        keep_latest(instance, gpus, hosts)


def moments(step: timedelta) -> list[datetime]:
    return [NOW - PAST + step * number for number in range(PAST // step + 1)]


def keep_latest(instance: Instance, gpus: list[Any], hosts: list[Any]) -> None:
    newest: dict[GPU, tuple[datetime, dict[str, Any]]] = {}
    worked: dict[GPU, datetime] = {}
    rested: dict[GPU, datetime] = {}
    for gpu, at, values in gpus:
        broken = gpu not in newest or at - newest[gpu][0] > DEFAULTS.unbroken_gap
        newest[gpu] = at, values
        works = shows_work(utilization_percent=values["utilization_percent"], sm_activity=values["sm_activity"])
        if works:
            worked[gpu] = at
        if works is not False:
            rested.pop(gpu, None)
        elif broken or gpu not in rested:
            rested[gpu] = at
    for gpu, (at, values) in newest.items():
        told = {"busy_at": worked.get(gpu), "idle_since": rested.get(gpu), **values}
        GpuLatest.objects.create(gpu=gpu, sampled_at=at, received_at=at, **told)
    if hosts:
        at, values = hosts[-1]
        HostLatest.objects.create(instance=instance, sampled_at=at, received_at=at, **values)


def enrol(instance: Instance, **said: Any) -> Agent:
    told = {"enrolled_at": ago(days=2), "heartbeat_at": ago(seconds=8), "batch_at": ago(seconds=8), "nvml_state": "ok"}
    secret = f"hash-{instance.pk}"
    return Agent.objects.create(instance=instance, token_hash=secret, prefix="rra_test", **{**told, **said})


def rolled_so_far() -> None:
    """Rollups as they are made by now: some samples always lie behind them."""
    start = FIVE_MINUTES.floor(NOW - PAST)
    for resolution in ROLLUPS:
        RollupProgress.objects.get_or_create(resolution=resolution.name, defaults={"rolled_until": start})
    roll_up(now=NOW)
