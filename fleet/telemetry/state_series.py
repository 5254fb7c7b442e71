"""Seconds that GPUs spent in each state, in even buckets, for spans that are longer than samples are read for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from fleet.inventory.models import GPU
from fleet.states import GpuState
from fleet.telemetry.pace import slowest_interval
from fleet.telemetry.spans import span_of
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from fleet.telemetry.store import current_store

Seconds = dict[GpuState, float]


@dataclass(frozen=True, slots=True)
class StateSeries:
    """`seconds`: GPU id -> one dict per bucket, None where nothing is known of the GPU; only states that it was in have an entry."""

    starts: list[datetime]
    bucket_seconds: float
    resolution: str
    seconds: dict[int, list[Seconds | None]]


def state_series(*, gpu_ids: Sequence[int], since: datetime, until: datetime, max_points: int = 600) -> StateSeries:
    """Raises ValueError for an empty span, and for fewer than two points.

    The time that is not rolled up yet is told by its samples alone: silence in it is not counted as any state.
    """
    interval = slowest_interval(list(GPU.objects.filter(pk__in=gpu_ids).values_list("instance_id", flat=True)))
    span = span_of(
        since=since,
        until=until,
        now=timezone.now(),
        max_points=max_points,
        interval_seconds=interval,
        owners=len(gpu_ids),
    )
    store = current_store()
    seconds: dict[int, list[Seconds | None]] = {pk: [None] * span.count for pk in gpu_ids}
    for pk, number, *parts in store.state_seconds(gpu_ids, span, interval_seconds=interval):
        found = {state: float(part) for state, part in zip(SECONDS_COLUMNS, parts, strict=True) if part}
        seconds[pk][number - span.first] = found or None
    return StateSeries(span.starts, float(span.bucket), store.reads(span.resolution).name, seconds)
