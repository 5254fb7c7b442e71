"""Series for charts over any span: one figure per even bucket, with gaps as None, from samples or from rollups (spans.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from fleet.inventory.models import GPU
from fleet.telemetry.pace import slowest_interval
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.spans import Span, choose_resolution, span_of
from fleet.telemetry.store import current_store
from fleet.telemetry.store.base import GPUS, HOSTS, STATISTICS, TOGETHER, Asked, Statistic

__all__ = [
    "STATISTICS",
    "TOGETHER",
    "Series",
    "Statistic",
    "gpu_series",
    "host_series",
    "merged_gpu_series",
    "resolution_read",
]


@dataclass(frozen=True, slots=True)
class Series:
    """`starts` holds the start of every bucket that touches [since, until), evenly spaced, aware UTC.

    `values`: gpu or instance id -> field -> one figure per bucket, None where nothing was read. Where `until` is now, the last
    bucket is still being filled and may be None on a healthy machine. `resolution` is the table that was read:
    "raw", "5min" or "1h". A mean over several rollups weighs each by its samples.
    """

    starts: list[datetime]
    bucket_seconds: float
    values: dict[int, dict[str, list[float | None]]]
    resolution: str = RAW.name
    statistic: Statistic = "mean"

    @property
    def percentile_of(self) -> str | None:
        """What a percentile was taken of: "samples", or "5min" and "1h", where it is the largest of the rollups' own in each bucket."""
        if self.statistic != "p95":
            return None
        return "samples" if self.resolution == RAW.name else self.resolution


def gpu_series(
    *,
    gpu_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """Raises ValueError for a field that is no column of GpuReading, for an empty span, and for fewer than two points."""
    asked = Asked(GPUS, gpu_ids, fields, statistic)
    return _series(asked, _span(since, until, max_points, _machines_of(gpu_ids), len(gpu_ids)))


def host_series(
    *,
    instance_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """Raises ValueError for a field that is no column of HostReading, for an empty span, and for fewer than two points."""
    asked = Asked(HOSTS, instance_ids, fields, statistic)
    return _series(asked, _span(since, until, max_points, instance_ids, len(instance_ids)))


def merged_gpu_series(
    *,
    gpu_ids: Sequence[int],
    fields: Sequence[str],
    since: datetime,
    until: datetime,
    max_points: int = 600,
    statistic: Statistic = "mean",
) -> Series:
    """All these GPUs as one, under the key TOGETHER: the mean, the lowest or the highest of what any of them read."""
    asked = Asked(GPUS, gpu_ids, fields, statistic, together=True)
    return _series(asked, _span(since, until, max_points, _machines_of(gpu_ids), len(gpu_ids)))


def _machines_of(gpu_ids: Sequence[int]) -> list[int]:
    return list(GPU.objects.filter(pk__in=gpu_ids).values_list("instance_id", flat=True))


def _span(since: datetime, until: datetime, max_points: int, instance_ids: Sequence[int], owners: int) -> Span:
    return span_of(
        since=since,
        until=until,
        now=timezone.now(),
        max_points=max_points,
        interval_seconds=slowest_interval(instance_ids),
        owners=owners,
    )


def _series(asked: Asked, span: Span) -> Series:
    known = asked.source.known_fields
    if unknown := sorted(set(asked.fields) - known):
        raise ValueError(f"{', '.join(unknown)}: no such reading; known are {', '.join(sorted(known))}")
    store = current_store()
    keys = [TOGETHER] if asked.together else asked.ids
    values: dict[int, dict[str, list[float | None]]] = {
        pk: {field: [None] * span.count for field in asked.fields} for pk in keys
    }
    for pk, number, *figures in store.figures(asked, span):
        for field, figure in zip(asked.fields, figures, strict=True):
            values[pk][field][number - span.first] = figure
    return Series(span.starts, float(span.bucket), values, store.reads(span.resolution).name, asked.statistic)


def resolution_read(*, since: datetime, until: datetime, now: datetime) -> str:
    """What a series over this span is read from: "raw", "5min" or "1h"."""
    return current_store().reads(choose_resolution(since=since, until=until, now=now)).name
