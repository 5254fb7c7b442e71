"""Which table answers for a span, and the grid of buckets over it.

A table of rollups ends where the job has come to; what is newer is read from the next finer one, so that a chart of a month still ends now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from fleet.telemetry.packed.read import samples_are_kept
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, RAW, Resolution
from fleet.telemetry.rollups.models import RollupProgress

LONGEST_RAW = timedelta(hours=6)
LONGEST_FIVE_MINUTES = timedelta(days=3)
# Readings come at an interval with some jitter: with buckets of one interval a healthy machine would show false gaps.
INTERVALS_PER_BUCKET = 2
FEWEST_POINTS = 2


def choose_resolution(*, since: datetime, until: datetime, now: datetime, owners: int = 1) -> Resolution:
    """By the length of the span, and by what is still kept of its beginning. `owners`: how many GPUs or machines are asked for."""
    length = until - since
    if length <= LONGEST_RAW and (
        since >= now - timedelta(days=settings.RAW_RETENTION_DAYS)
        or samples_are_kept(since=since, until=until, owners=owners)
    ):
        return RAW
    if length <= LONGEST_FIVE_MINUTES and since >= now - timedelta(days=settings.ROLLUP_5MIN_RETENTION_DAYS):
        return FIVE_MINUTES
    return HOUR


def bucket_size(*, span_seconds: float, max_points: int, interval_seconds: int, resolution: Resolution = RAW) -> int:
    """Whole seconds, whole rollups, so that a span never has more than max_points buckets and each holds a healthy machine's reading."""
    # One bucket more may touch the span, because buckets lie on a grid of their own.
    least = max(math.ceil(span_seconds / (max_points - 1)), INTERVALS_PER_BUCKET * interval_seconds)
    width = resolution.seconds or 1
    return -(-least // width) * width


@dataclass(frozen=True, slots=True)
class Span:
    """[since, until) and the grid of buckets over it: bucket n covers [n * bucket, (n + 1) * bucket) of the epoch."""

    since: datetime
    until: datetime
    bucket: int
    resolution: Resolution

    @property
    def first(self) -> int:
        return math.floor(self.since.timestamp() / self.bucket)

    @property
    def count(self) -> int:
        return math.ceil(self.until.timestamp() / self.bucket) - self.first

    @property
    def starts(self) -> list[datetime]:
        return [self.start_of(number) for number in range(self.count)]

    def start_of(self, number: int) -> datetime:
        return datetime.fromtimestamp((self.first + number) * self.bucket, UTC)


def span_of(
    *, since: datetime, until: datetime, now: datetime, max_points: int, interval_seconds: int, owners: int = 1
) -> Span:
    """Raises ValueError for an empty span, and for fewer points than two."""
    seconds = (until - since).total_seconds()
    if seconds <= 0:
        raise ValueError("until must be later than since")
    if max_points < FEWEST_POINTS:
        raise ValueError(f"max_points must be {FEWEST_POINTS} at least")
    resolution = choose_resolution(since=since, until=until, now=now, owners=owners)
    bucket = bucket_size(
        span_seconds=seconds, max_points=max_points, interval_seconds=interval_seconds, resolution=resolution
    )
    return Span(since, until, bucket, resolution)


@dataclass(frozen=True, slots=True)
class Segment:
    """[since, until) of a span, all of it read from one table."""

    resolution: Resolution
    since: datetime
    until: datetime


def segments_of(span: Span) -> list[Segment]:
    """Whole buckets: a part of one at either end could miss its reading and look like a gap."""
    start, end = span.start_of(0), span.start_of(span.count)
    if span.resolution == RAW:
        return [Segment(RAW, start, end)]
    reach = dict(RollupProgress.objects.values_list("resolution", "rolled_until"))
    found: list[Segment] = []
    for resolution in (HOUR, FIVE_MINUTES) if span.resolution == HOUR else (FIVE_MINUTES,):
        until = min(reach.get(resolution.name, start), end)
        if until > start:
            found.append(Segment(resolution, start, until))
            start = until
    return [*found, Segment(RAW, start, end)] if start < end else found
