"""Five minutes of machines as the roller writes them, from the same signs as the pure tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fleet.idle.dryrun.evidence import BUCKET
from fleet.inventory.models import Instance, Observation
from fleet.providers.base import Billing, InstanceState
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, HostRollupFiveMinutes, RollupProgress

SECONDS = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")
GPU_REST = {"utilization_percent_max": 0.0, "sm_activity_max": 0.001, "power_watts_max": 70.0}
GPU_WORK = {"utilization_percent_max": 90.0, "sm_activity_max": 0.6, "power_watts_max": 500.0}
HOST_REST = {
    "cpu_percent_p95": 3.0,
    "disk_read_bytes_per_second_p95": 0.0,
    "disk_write_bytes_per_second_p95": 20_000.0,
    "network_rx_bytes_per_second_p95": 4_000.0,
    "network_tx_bytes_per_second_p95": 1_000.0,
    "ssh_sessions_max": 0.0,
    "jupyter_busy_kernels_max": 0.0,
}


def listed(instance: Instance, at: datetime, *, state: InstanceState = InstanceState.RUNNING, **told: Any) -> None:
    Observation.objects.create(
        instance=instance,
        seen_at=at,
        state=state,
        billing=Billing.FULL if state == InstanceState.RUNNING else Billing.STORAGE,
        currency="USD",
        rule_version=1,
        **told,
    )


def record(instance: Instance, signs: str, start: datetime, **host: float | None) -> datetime:
    """`w` all GPUs work, `1` one of them does, `.` rest, `?` silence; returns where it ends. Also says how far rollups are."""
    gpus = list(instance.gpus.order_by("index"))
    rows, hosts = [], []
    for number, sign in enumerate(signs):
        at = start + number * BUCKET
        for gpu in gpus:
            works = sign == "w" or (sign == "1" and gpu.index == 0)
            told = {} if sign == "?" else GPU_WORK if works else GPU_REST
            rows.append(gpu_row(gpu.pk, at, **told))
        if sign != "?":
            read: dict[str, float | None] = {**HOST_REST, **host}
            hosts.append(HostRollupFiveMinutes(instance=instance, bucket_at=at, samples=30, coverage=1.0, **read))
    GpuRollupFiveMinutes.objects.bulk_create(rows)
    HostRollupFiveMinutes.objects.bulk_create(hosts)
    end = start + len(signs) * BUCKET
    RollupProgress.objects.update_or_create(resolution="5min", defaults={"rolled_until": end})
    return end


def gpu_row(gpu_id: int, at: datetime, **told: float) -> GpuRollupFiveMinutes:
    state = "free" if told else "unknown"
    seconds = {f"{name}_seconds": 300.0 if name == state else 0.0 for name in SECONDS}
    share = 1.0 if told else 0.0
    return GpuRollupFiveMinutes(gpu_id=gpu_id, bucket_at=at, samples=30 * bool(told), coverage=share, **seconds, **told)


def hours(count: float) -> str:
    """So many signs of rest."""
    return "." * round(timedelta(hours=count) / BUCKET)
