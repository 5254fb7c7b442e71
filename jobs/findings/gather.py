"""Evidence of an attempt from rows: its logs, its points, and what was measured on its machines over its time. A constant number of queries,
and one for each machine's log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fleet.inventory.models import GPU
from fleet.providers.base import Market
from fleet.quality.models import NeighbourEvidence
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.series import Series as Measured
from fleet.telemetry.series import gpu_series, host_series
from jobs.book.models import Attempt, JobState, Node
from jobs.diagnosis.evidence import (
    Event,
    Evidence,
    GpuEvidence,
    HostEvidence,
    Kind,
    Line,
    Predicted,
    Series,
)
from jobs.logs.read import last_lines
from jobs.metrics.models import JobPoint
from jobs.progress.point import Point
from jobs.serving.evidence import serving_evidence

LINES, POINTS = 3_000, 2_000
# What a chart could show of the time that is looked at.
READINGS = 240
# A chart of no time is none.
SHORTEST = timedelta(minutes=1)
# Of a long run: the rules ask how it goes now.
LOOKS_BACK = timedelta(hours=6)
GPU_FIELDS = (
    "utilization_percent",
    "sm_activity",
    "power_watts",
    "power_limit_watts",
    "memory_used_bytes",
    "pcie_rx_bytes_per_second",
)
HOST_FIELDS = (
    "cpu_percent",
    "cpu_iowait_percent",
    "pressure_io_percent",
    "memory_used_bytes",
    "disk_read_bytes_per_second",
    "disk_busy_percent",
    "network_rx_bytes_per_second",
    "filesystem_used_bytes",
)
_POINT_FIELDS = tuple(Point.__dataclass_fields__)


def gather(attempt: Attempt, *, now: datetime) -> Evidence:
    """Raises StoreError where readings cannot be read: a diagnosis on half of the evidence would be none."""
    nodes = list(attempt.nodes.select_related("instance__host_latest").order_by("rank"))
    machines = [node.instance_id for node in nodes]
    began = attempt.started_at or attempt.created_at
    until = max(attempt.ended_at or now, began + SHORTEST)
    since = max(began, until - LOOKS_BACK)
    return Evidence(
        kind=Kind(attempt.job.kind),
        lines=tuple(_lines(nodes)),
        points=_points(attempt),
        gpus=tuple(_gpus(machines, since, until)),
        host=_host(nodes, since, until),
        serving=serving_evidence(attempt, since=since, until=until),
        events=tuple(_events(machines, began, until)),
        predicted=_predicted(attempt.job.predicted),
        settings=_settings(attempt.job.predicted),
        started_at=began.timestamp(),
        now=now.timestamp(),
        exit_code=_exit_code(nodes),
        spot=any(node.instance.market == Market.SPOT for node in nodes),
        neighbour_score=_neighbours(machines, since, until),
        machine_ended_at=until.timestamp() if attempt.why == "machine_gone" else None,
    )


def _lines(nodes: Sequence[Node]) -> Iterator[Line]:
    """Of every machine, the first one's last: what one rank says must not hide what another did."""
    number = 0
    for node in reversed(nodes):
        for line in last_lines(node, LINES // max(1, len(nodes))):
            number = line.number if node.rank == 0 else number - 1
            yield Line(number, line.text, rank=node.rank)


def _points(attempt: Attempt) -> tuple[tuple[float, Point], ...]:
    rows = JobPoint.objects.filter(attempt=attempt).order_by("-at", "-pk").values("at", *_POINT_FIELDS)[:POINTS]
    return tuple((row.pop("at").timestamp(), Point(**row)) for row in reversed(rows))


def _gpus(machines: Sequence[int], since: datetime, until: datetime) -> Iterator[GpuEvidence]:
    gpus = list(
        GPU.objects.filter(instance__in=machines, removed_at=None)
        .select_related("latest")
        .order_by("instance", "index")
    )
    if not gpus:
        return
    measured = gpu_series(
        gpu_ids=[gpu.pk for gpu in gpus], fields=GPU_FIELDS, since=since, until=until, max_points=READINGS
    )
    for place, gpu in enumerate(gpus):
        read = {field: series_of(measured, gpu.pk, field) for field in GPU_FIELDS}
        yield GpuEvidence(
            index=place,
            name=gpu.name,
            utilization_percent=read["utilization_percent"],
            sm_activity=read["sm_activity"],
            power_watts=read["power_watts"],
            power_limit_watts=read["power_limit_watts"].last,
            memory_used_bytes=read["memory_used_bytes"],
            memory_total_bytes=gpu.memory_total_bytes,
            pcie_rx_bytes_per_second=read["pcie_rx_bytes_per_second"],
        )


def series_of(measured: Measured, pk: int, field: str) -> Series:
    """Without its gaps: what was not read is no reading."""
    figures = measured.values.get(pk, {}).get(field, [])
    pairs = zip(measured.starts, figures, strict=True)
    return Series(tuple((start.timestamp(), float(figure)) for start, figure in pairs if figure is not None))


def _host(nodes: Sequence[Node], since: datetime, until: datetime) -> HostEvidence:
    """Of the first machine: the rest of a job does what it does."""
    instance = nodes[0].instance
    measured = host_series(
        instance_ids=[instance.pk], fields=HOST_FIELDS, since=since, until=until, max_points=READINGS
    )
    read = {field: series_of(measured, instance.pk, field) for field in HOST_FIELDS}
    latest = getattr(instance, "host_latest", None)
    whole = latest.filesystem_total_bytes if latest else None
    used = read["filesystem_used_bytes"].points if whole else ()
    return HostEvidence(
        cpu_percent=read["cpu_percent"],
        iowait_percent=read["cpu_iowait_percent"],
        pressure_io_percent=read["pressure_io_percent"],
        memory_used_bytes=read["memory_used_bytes"],
        memory_total_bytes=latest.memory_total_bytes if latest else None,
        disk_read_bytes_per_second=read["disk_read_bytes_per_second"],
        disk_busy_percent=read["disk_busy_percent"],
        network_bytes_per_second=read["network_rx_bytes_per_second"],
        disk_used_ratio=Series(tuple((at, value / whole) for at, value in used if whole)),
    )


def _events(machines: Sequence[int], since: datetime, until: datetime) -> Iterator[Event]:
    rows = MachineEvent.objects.filter(instance__in=machines, at__gte=since, at__lt=until + timedelta(minutes=2))
    for at, kind, code, index in rows.order_by("at").values_list("at", "kind", "code", "gpu__index")[:500]:
        yield Event(at.timestamp(), kind, code, index)


def _neighbours(machines: Sequence[int], since: datetime, until: datetime) -> int | None:
    rows = NeighbourEvidence.objects.filter(instance__in=machines, hour__gte=since - timedelta(hours=1), hour__lt=until)
    return max(rows.values_list("score", flat=True), default=None)


def _exit_code(nodes: Sequence[Node]) -> int | None:
    """Of the node that failed, else of all; None while one runs."""
    codes = [node.exit_code for node in nodes]
    failed = next((code for code in codes if code not in {None, 0}), None)
    if failed is not None:
        return failed
    return 0 if all(code == 0 for code in codes) and all(node.state == JobState.SUCCEEDED for node in nodes) else None


def _predicted(kept: Mapping[str, Any]) -> Predicted:
    names = tuple(name for name in Predicted.__dataclass_fields__ if name != "terms")
    return Predicted(terms=dict(kept.get("terms", {})), **{name: kept.get(name) for name in names})


def _settings(kept: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in kept.get("settings", {}).items() if isinstance(value, int | float)}
