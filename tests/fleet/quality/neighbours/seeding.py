"""Hours of the sandbox's machines written as the roller would have written them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from fleet.inventory.models import Instance
from fleet.quality.neighbours.hours import Hour
from fleet.telemetry.rollups.models import GpuRollupHour, HostRollupHour, RollupProgress

HOUR = timedelta(hours=1)


def roll(instance: Instance, hours: Iterable[Hour]) -> None:
    """Needs one GPU; several would share what is told of all of them."""
    gpu = instance.gpus.get()
    hours = list(hours)
    GpuRollupHour.objects.bulk_create(
        GpuRollupHour(
            gpu=gpu,
            bucket_at=hour.at,
            samples=36,
            coverage=hour.coverage,
            working_seconds=3600,
            **dict.fromkeys(("held_seconds", "free_seconds", "starved_seconds", "stalled_seconds", "unknown_seconds", "stopped_seconds"), 0),
            throttle_reasons=0x40 if hour.throttled else 0x1,
            utilization_percent_avg=hour.gpu_utilization_percent,
            power_watts_avg=hour.gpu_power_watts,
            memory_used_bytes_avg=hour.gpu_memory_bytes,
            process_count_avg=hour.gpu_processes,
            sm_clock_mhz_avg=hour.gpu_clock_mhz,
            pcie_rx_bytes_per_second_avg=hour.pcie_bytes_per_second,
        )
        for hour in hours
    )  # fmt: skip
    HostRollupHour.objects.bulk_create(
        HostRollupHour(
            instance=instance,
            bucket_at=hour.at,
            samples=36,
            coverage=hour.coverage,
            cpu_percent_avg=hour.cpu_percent,
            cpu_iowait_percent_avg=hour.iowait_percent,
            pressure_cpu_percent_avg=hour.cpu_pressure_percent,
            pressure_io_percent_avg=hour.io_pressure_percent,
            disk_read_bytes_per_second_avg=hour.disk_bytes_per_second,
            disk_write_bytes_per_second_avg=0,
            disk_read_latency_seconds_avg=hour.disk_latency_seconds,
            network_rx_bytes_per_second_avg=hour.network_bytes_per_second,
            network_tx_bytes_per_second_avg=0,
        )
        for hour in hours
    )
    RollupProgress.objects.update_or_create(
        resolution="1h", defaults={"rolled_until": max(hour.at for hour in hours) + HOUR}
    )
