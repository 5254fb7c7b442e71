"""Seconds in each state from counts of samples, with silence told as the rollups of PostgreSQL tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fleet.inventory.models import GPU, Observation
from fleet.providers.base import InstanceState
from fleet.states import GpuState
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.rollups.roll import GRACE
from fleet.telemetry.spans import Span
from fleet.telemetry.state_codes import SECONDS_COLUMNS

Interval = tuple[float, float]
_OFF = (InstanceState.STOPPED, InstanceState.TERMINATED)


@dataclass(slots=True)
class Presence:
    """When a GPU was there to say something, and when listings showed its machine off: seconds since the epoch."""

    begins: float
    ends: float
    off: list[Interval] = field(default_factory=list)


def state_seconds(
    gpu_ids: Sequence[int],
    span: Span,
    counts: Mapping[tuple[int, int], Mapping[str, float]],
    *,
    interval_seconds: int,
    now: datetime,
) -> Iterator[tuple[Any, ...]]:
    """Rows as Store.state_seconds has them. counts: (GPU id, bucket) -> samples by state.

    Short spans are told by their samples alone. In longer ones, what no sample stands for is stopped where listings showed the machine off, else unknown.
    """
    presences = _presences(gpu_ids, span, now) if span.resolution != RAW else {}
    for gpu_id in gpu_ids:
        for number in range(span.first, span.first + span.count):
            seconds = _told(counts.get((gpu_id, number), {}), span.bucket, interval_seconds)
            if presence := presences.get(gpu_id):
                _add_silence(seconds, presence, number * span.bucket, (number + 1) * span.bucket)
            if seconds:
                yield gpu_id, number, *(seconds.get(state, 0.0) for state in SECONDS_COLUMNS)


def _told(samples: Mapping[str, float], bucket: int, interval_seconds: int) -> dict[GpuState, float]:
    """Each sample stands for an even share of the time that is covered."""
    total = sum(samples.values())
    covered = min(bucket, total * interval_seconds)
    return {GpuState(name): covered * count / total for name, count in samples.items() if count}


def _add_silence(seconds: dict[GpuState, float], presence: Presence, start: float, end: float) -> None:
    start, end = max(start, presence.begins), min(end, presence.ends)
    silent = end - start - sum(seconds.values())
    if silent <= 0:
        return
    off = min(silent, sum(max(0.0, min(end, until) - max(start, since)) for since, until in presence.off))
    for state, part in ((GpuState.STOPPED, off), (GpuState.UNKNOWN, silent - off)):
        if part:
            seconds[state] = seconds.get(state, 0.0) + part


def _presences(gpu_ids: Sequence[int], span: Span, now: datetime) -> dict[int, Presence]:
    """A GPU is there for whole rollups, as far as they would have come by now."""
    width = span.resolution.seconds
    settled = span.resolution.floor(now - GRACE).timestamp()
    rows = GPU.objects.filter(pk__in=gpu_ids).values_list(
        "pk", "instance_id", "first_seen_at", "removed_at", "instance__gone_at"
    )
    found: dict[int, Presence] = {}
    machines: dict[int, list[Presence]] = {}
    for pk, instance_id, first, removed, gone in rows:
        left = min((-(-moment.timestamp() // width) * width for moment in (removed, gone) if moment), default=settled)
        presence = Presence(span.resolution.floor(first).timestamp(), min(left, settled))
        found[pk] = presence
        machines.setdefault(instance_id, []).append(presence)
    for instance_id, off in _off_intervals(list(machines), span).items():
        for presence in machines[instance_id]:
            presence.off = off
    return found


def _off_intervals(instance_ids: Sequence[int], span: Span) -> dict[int, list[Interval]]:
    begin, end = span.start_of(0), span.start_of(span.count)
    log = Observation.objects.filter(instance_id__in=instance_ids)
    before = log.filter(seen_at__lte=begin).order_by("instance_id", "-seen_at", "-pk").distinct("instance_id")
    within = log.filter(seen_at__gt=begin, seen_at__lt=end).order_by("instance_id", "seen_at", "pk")
    states: dict[int, list[tuple[datetime, str]]] = {}
    for row in [*before, *within]:
        states.setdefault(row.instance_id, []).append((max(row.seen_at.astimezone(UTC), begin), row.state))
    return {instance_id: list(_off(seen, end)) for instance_id, seen in states.items()}


def _off(seen: Sequence[tuple[datetime, str]], end: datetime) -> Iterator[Interval]:
    for (since, state), (until, _) in zip(seen, [*seen[1:], (end, "")], strict=True):
        if state in _OFF:
            yield since.timestamp(), until.timestamp()
