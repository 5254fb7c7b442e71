"""What was measured on an attempt's machines over its time: GPUs and the machines themselves. A constant number of queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db.models import Count, F, Q

from fleet.inventory.environments.verdicts import gpu_named
from fleet.inventory.models import GPU
from fleet.telemetry.models import GpuSample
from fleet.telemetry.series import Series as Measured
from fleet.telemetry.series import gpu_series, host_series
from jobs.book.models import Node
from jobs.diagnosis.evidence import GpuEvidence, HostEvidence, Series

# What a chart could show of the time that is looked at.
READINGS = 240
GPU_FIELDS = ("utilization_percent", "sm_activity", "power_watts", "power_limit_watts", "memory_used_bytes")
HOST_FIELDS = (
    "cpu_percent",
    "cpu_iowait_percent",
    "pressure_io_percent",
    "pressure_memory_percent",
    "memory_used_bytes",
    "disk_busy_percent",
    "network_rx_bytes_per_second",
    "filesystem_used_bytes",
)
# NVML's reasons for lower clocks: software and hardware thermal slowdown; the cap of power.
HOT_BITS, CAPPED_BIT = 0x20 | 0x40, 0x4
# Bits have no mean: they are counted in the samples of the last time.
BITS_BACK = timedelta(hours=1)
GBIT_BYTES = 1e9 / 8


def gpu_evidence(machines: Sequence[int], since: datetime, until: datetime) -> Iterator[GpuEvidence]:
    """By machine and index; `index` counts through all of them."""
    gpus = list(GPU.objects.filter(instance__in=machines, removed_at=None).order_by("instance", "index"))
    if not gpus:
        return
    ids = [gpu.pk for gpu in gpus]
    measured = gpu_series(gpu_ids=ids, fields=GPU_FIELDS, since=since, until=until, max_points=READINGS)
    slowed = _slowed(ids, max(since, until - BITS_BACK), until)
    for place, gpu in enumerate(gpus):
        read = {field: series_of(measured, gpu.pk, field) for field in GPU_FIELDS}
        hot, capped = slowed.get(gpu.pk, (None, None))
        known = gpu_named(gpu.name)
        yield GpuEvidence(
            index=place,
            name=gpu.name,
            utilization_percent=read["utilization_percent"],
            sm_activity=read["sm_activity"],
            power_watts=read["power_watts"],
            power_limit_watts=read["power_limit_watts"].last,
            rated_watts=known.board_watts if known else None,
            memory_used_bytes=read["memory_used_bytes"],
            memory_total_bytes=gpu.memory_total_bytes,
            hot=hot,
            capped=capped,
        )


def _slowed(ids: Sequence[int], since: datetime, until: datetime) -> dict[int, tuple[float, float]]:
    """Shares of the samples in which a GPU was slowed for heat, and for power; nothing of one that was not read."""
    bits = F("throttle_reasons")
    rows = (
        GpuSample.objects.filter(
            gpu__in=ids, sampled_at__gte=since, sampled_at__lt=until, throttle_reasons__isnull=False
        )
        .annotate(hot_bits=bits.bitand(HOT_BITS), cap_bit=bits.bitand(CAPPED_BIT))
        .values("gpu_id")
        .annotate(
            read=Count("sampled_at"),
            hot=Count("sampled_at", filter=Q(hot_bits__gt=0)),
            capped=Count("sampled_at", filter=Q(cap_bit__gt=0)),
        )
    )
    return {row["gpu_id"]: (row["hot"] / row["read"], row["capped"] / row["read"]) for row in rows}


def series_of(measured: Measured, pk: int, field: str) -> Series:
    """Without its gaps: what was not read is no reading."""
    figures = measured.values.get(pk, {}).get(field, [])
    pairs = zip(measured.starts, figures, strict=True)
    return Series(tuple((start.timestamp(), float(figure)) for start, figure in pairs if figure is not None))


def host_evidence(nodes: Sequence[Node], since: datetime, until: datetime) -> HostEvidence:
    """Of several machines the worst of each: the others wait for it."""
    machines = [node.instance_id for node in nodes]
    measured = host_series(instance_ids=machines, fields=HOST_FIELDS, since=since, until=until, max_points=READINGS)
    read = {field: [series_of(measured, pk, field) for pk in machines] for field in HOST_FIELDS}
    latest = [getattr(node.instance, "host_latest", None) for node in nodes]
    memory, total = _fullest(read["memory_used_bytes"], [one.memory_total_bytes if one else None for one in latest])
    disk, whole = _fullest(
        read["filesystem_used_bytes"], [one.filesystem_total_bytes if one else None for one in latest]
    )
    links = [float(speed) for node in nodes if (speed := node.facts.get("network", {}).get("gbit_per_second"))]
    return HostEvidence(
        cpu_percent=_worst(read["cpu_percent"]),
        iowait_percent=_worst(read["cpu_iowait_percent"]),
        pressure_io_percent=_worst(read["pressure_io_percent"]),
        pressure_memory_percent=_worst(read["pressure_memory_percent"]),
        memory_used_bytes=memory,
        memory_total_bytes=total,
        disk_busy_percent=_worst(read["disk_busy_percent"]),
        network_bytes_per_second=_worst(read["network_rx_bytes_per_second"]),
        link_bytes_per_second=min(links) * GBIT_BYTES if links else None,
        disk_used_ratio=Series(tuple((at, used / whole) for at, used in disk.points)) if whole else Series(),
    )


def _worst(found: Sequence[Series]) -> Series:
    return max(found, key=lambda series: series.mean if series.mean is not None else -1.0)


def _fullest(found: Sequence[Series], totals: Sequence[int | None]) -> tuple[Series, float | None]:
    """With its size; one whose size is not known cannot be compared."""
    known = [(series, float(total)) for series, total in zip(found, totals, strict=True) if series and total]
    if not known:
        return found[0], None
    return max(known, key=lambda pair: (pair[0].last or 0.0) / pair[1])
