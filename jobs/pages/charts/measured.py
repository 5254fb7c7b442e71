"""What was measured on a job's machines, as rows of its chart: GPUs, disk, network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from fleet.formats import bytes_text, rate_text, rate_unit
from fleet.inventory.models import GPU
from fleet.pages.chartlist import percent_text
from fleet.pages.charts import GAP_BUCKETS, stretches
from fleet.telemetry.series import TOGETHER, Series, host_series, merged_gpu_series
from jobs.pages.charts.rows import Gap, Line, Row, Window

GIB = 1 << 30
GPU_FIELDS = ("utilization_percent", "memory_used_bytes")
HOST_FIELDS = (
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "network_rx_bytes_per_second",
    "network_tx_bytes_per_second",
)
MAX_POINTS = 400
# Of the newest buckets: an older reading is no present figure.
PRESENT = 3


def measured_rows(instance_ids: Sequence[int], window: Window) -> Iterator[Row]:
    """Of several machines: the mean of all GPUs, the sum of disks and networks where each machine was read. Raises StoreError."""
    gpus = list(GPU.objects.filter(instance__in=instance_ids, removed_at=None).values_list("pk", flat=True))
    if gpus:
        series = merged_gpu_series(
            gpu_ids=gpus, fields=GPU_FIELDS, since=window.start, until=window.end, max_points=MAX_POINTS
        )
        yield from _gpu_rows(series, len(gpus))
    hosts = host_series(
        instance_ids=instance_ids, fields=HOST_FIELDS, since=window.start, until=window.end, max_points=MAX_POINTS
    )
    yield from _host_rows(hosts, instance_ids)


def _gpu_rows(series: Series, count: int) -> Iterator[Row]:
    of = ngettext("%(n)d GPU", "mean of %(n)d GPUs", count) % {"n": count}
    read = series.values[TOGETHER]
    busy, used = (_line(series, read[name], of) for name in GPU_FIELDS)
    gaps = _gaps(series, [read["utilization_percent"]])
    source = _("measured on its machines")
    if _known(busy):
        figure = _figure([(busy, f", {of}")], percent_text)
        yield Row("busy", _("GPUs busy"), [busy], percent_text, source, "%", top=100, gaps=gaps, figure=figure)
    if _known(used):
        figure = _figure([(used, f", {of}")], bytes_text)
        yield Row(
            "memory", _("GPU memory"), [used], bytes_text, source, " GiB", factor=1 / GIB, gaps=gaps, figure=figure
        )


def _host_rows(series: Series, machines: Sequence[int]) -> Iterator[Row]:
    words = (
        ("disk", _("Disk"), pgettext("disk", "read"), pgettext("disk", "write"), HOST_FIELDS[:2]),
        ("network", _("Network"), pgettext("network", "in"), pgettext("network", "out"), HOST_FIELDS[2:]),
    )
    for name, title, first, second, fields in words:
        sums = [_sum(series, machines, field) for field in fields]
        lines = [_line(series, sums[0], first), _line(series, sums[1], second, "dot")]
        known = [line for line in lines if _known(line)]
        if not known:
            continue
        highest = max(value for line in known for _at, value in line.points if value is not None)
        unit, factor = rate_unit(highest)
        yield Row(
            name,
            title,
            known,
            rate_text,
            _("measured on its machines"),
            f" {unit}",
            factor=factor,
            gaps=_gaps(series, sums),
            figure=_figure([(line, f" {line.name}") for line in known], rate_text),
        )


def _sum(series: Series, machines: Sequence[int], field: str) -> list[float | None]:
    columns = [series.values.get(machine, {}).get(field, [None] * len(series.starts)) for machine in machines]
    return [
        sum(known) if len(known := [v for v in cells if v is not None]) == len(machines) else None
        for cells in zip(*columns, strict=True)
    ]


def _line(series: Series, values: Sequence[float | None], name: str, dash: str = "solid") -> Line:
    half = timedelta(seconds=series.bucket_seconds / 2)
    return Line(
        name, [((start + half).timestamp(), value) for start, value in zip(series.starts, values, strict=True)], dash
    )


def _known(line: Line) -> bool:
    return any(value is not None for _at, value in line.points)


def _gaps(series: Series, columns: Sequence[Sequence[float | None]]) -> list[Gap]:
    """The last buckets may still be being filled: they are no gap."""
    known = [any(value is not None for value in cells) for cells in zip(*columns, strict=True)]
    found = stretches(series.starts[:-PRESENT], series.bucket_seconds, known[:-PRESENT])
    least = GAP_BUCKETS * series.bucket_seconds
    return [(a.timestamp(), b.timestamp()) for a, b in found if (b - a).total_seconds() > least]


def _figure(lines: Sequence[tuple[Line, str]], text: Callable[[float], str]) -> str:
    """The newest value of each, with what stands behind it."""
    newest = [
        (next((value for _at, value in reversed(line.points[-PRESENT:]) if value is not None), None), name)
        for line, name in lines
    ]
    return ", ".join(f"{text(value)}{name}" for value, name in newest if value is not None)
