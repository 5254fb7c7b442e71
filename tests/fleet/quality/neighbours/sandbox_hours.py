"""Hours of machines of the sandbox as rollups would hold them, made straight from their samples."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from statistics import fmean
from typing import Any

from fleet.providers.base import Tenancy
from fleet.quality.neighbours.hours import Hour
from fleet.quality.neighbours.reading import OWN_REASONS, is_shared
from fleet.quality.neighbours.score import Host
from fleet.sandbox.cast import MEMBERS, OFFERS
from fleet.sandbox.readings import Machine
from fleet.sandbox.rentals import rental_of

BORN_AT = 1_795_737_600.0
STEP_SECONDS = 100


@cache
def hours_of(name: str, count: int = 24) -> tuple[Hour, ...]:
    member = next(member for member in MEMBERS if member.name == name)
    machine = Machine.of(rental_of(member, BORN_AT), born_at=BORN_AT)
    first = BORN_AT - count * 3600
    return tuple(_hour(machine, first + number * 3600) for number in range(count))


def host_of(name: str) -> Host:
    offer = OFFERS[next(member.offer for member in MEMBERS if member.name == name)]
    return Host(is_shared(offer.tenancy), disk_is_own=offer.tenancy == Tenancy.DEDICATED_GPU)


def _hour(machine: Machine, start: float) -> Hour:
    samples = [machine.sample(start + second) for second in range(0, 3600, STEP_SECONDS)]
    hosts, gpus = [sample["host"] for sample in samples], [gpu for sample in samples for gpu in sample["gpus"]]
    cards = len(samples[0]["gpus"])
    return Hour(
        at=datetime.fromtimestamp(start, UTC),
        coverage=1.0,
        gpu_utilization_percent=_mean(gpus, "utilization_percent"),
        gpu_power_watts=_mean(gpus, "power_watts", cards),
        gpu_memory_bytes=_mean(gpus, "memory_used_bytes", cards),
        gpu_processes=_mean(gpus, "process_count", cards),
        gpu_clock_mhz=_mean(gpus, "sm_clock_mhz"),
        throttled=any(gpu.get("throttle_reasons", 0) & OWN_REASONS for gpu in gpus),
        pcie_bytes_per_second=_sum(gpus, cards, "pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second"),
        cpu_percent=_mean(hosts, "cpu_percent"),
        iowait_percent=_mean(hosts, "cpu_iowait_percent"),
        cpu_pressure_percent=_mean(hosts, "pressure_cpu_percent"),
        io_pressure_percent=_mean(hosts, "pressure_io_percent"),
        disk_bytes_per_second=_sum(hosts, 1, "disk_read_bytes_per_second", "disk_write_bytes_per_second"),
        disk_latency_seconds=_mean(hosts, "disk_read_latency_seconds"),
        network_bytes_per_second=_sum(hosts, 1, "network_rx_bytes_per_second", "network_tx_bytes_per_second"),
    )


def _mean(rows: Iterable[dict[str, Any]], name: str, times: int = 1) -> float | None:
    values = [row[name] for row in rows if row.get(name) is not None]
    return times * fmean(values) if values else None


def _sum(rows: Iterable[dict[str, Any]], times: int, *names: str) -> float | None:
    means = [mean for name in names if (mean := _mean(rows, name, times)) is not None]
    return sum(means) if means else None
