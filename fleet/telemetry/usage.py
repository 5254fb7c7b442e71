"""What a fleet did over any span: percentiles of utilization across its GPUs, GPU-hours in each state, power. From fleet rollups.

Split and filtered by what machines were when the time was rolled up, so that a machine that changed its project keeps its past.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg import sql

from fleet.states import GpuState
from fleet.telemetry.histogram import mean, percentile
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, Resolution
from fleet.telemetry.rollups.fleet_models import UTILIZATION_BINS, FleetRollupProgress, RollupGroup
from fleet.telemetry.spans import LONGEST_FIVE_MINUTES, Segment, Span, bucket_size
from fleet.telemetry.state_codes import SECONDS_COLUMNS

HOUR_SECONDS = 3600


class Dimension(StrEnum):
    """What a fleet can be split and filtered by. Values are strings; `NO_PROJECT` stands for machines without one."""

    PROVIDER = "provider"
    PROJECT = "project"
    GPU_MODEL = "gpu_model"
    TENANCY = "tenancy"


NO_PROJECT = "none"
_COLUMNS = {
    Dimension.PROVIDER: "account__kind",
    Dimension.PROJECT: "project_id",
    Dimension.GPU_MODEL: "gpu_model",
    Dimension.TENANCY: "tenancy",
}
# Under this key stands the whole fleet, or what is left beside the largest parts of a split.
ALL, OTHERS = None, ""


@dataclass(slots=True)
class Bucket:
    """One bucket of one line. `counts[n]`: GPUs with a mean of n percent, weighed by how long a rollup is."""

    seconds: dict[GpuState, float] = field(default_factory=lambda: defaultdict(float))
    counts: list[float] = field(default_factory=lambda: [0.0] * UTILIZATION_BINS)
    watt_seconds: float = 0.0
    power_seconds: float = 0.0

    def add(self, other: Bucket) -> None:
        """What the same GPUs did at another time."""
        self.add_beside(other)
        self.power_seconds += other.power_seconds

    def add_beside(self, other: Bucket) -> None:
        """What other GPUs did at the same time: power adds up. The caller sees to `power_seconds`."""
        for state, seconds in other.seconds.items():
            self.seconds[state] += seconds
        self.counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        self.watt_seconds += other.watt_seconds


@dataclass(frozen=True, slots=True)
class Line:
    """`key`: a value of the dimension that was split by, ALL without a split, OTHERS for the rest. None in `buckets`: nothing is known."""

    key: str | None
    buckets: list[Bucket | None]

    def utilization(self, share: float) -> list[int | None]:
        """Percentiles across GPUs, in whole percents."""
        return [percentile(bucket.counts, share) if bucket else None for bucket in self.buckets]

    def mean_utilization(self) -> list[float | None]:
        return [mean(bucket.counts) if bucket else None for bucket in self.buckets]

    def gpu_hours(self, state: GpuState) -> list[float | None]:
        return [bucket.seconds.get(state, 0.0) / HOUR_SECONDS if bucket else None for bucket in self.buckets]

    def power_watts(self) -> list[float | None]:
        """Of all GPUs that told theirs together."""
        return [
            bucket.watt_seconds / bucket.power_seconds if bucket and bucket.power_seconds else None
            for bucket in self.buckets
        ]

    def total(self) -> Bucket:
        whole = Bucket()
        for bucket in self.buckets:
            if bucket:
                whole.add(bucket)
        return whole


@dataclass(frozen=True, slots=True)
class Usage:
    """`starts` are the starts of even buckets, aware UTC; the last ends where rollups do. Percentiles are across GPUs, each counted once
    a rollup of `resolution` ("5min" or "1h") with its mean in it.

    `rolled_until`: up to then figures are known; None: nothing was rolled up yet.
    """

    starts: list[datetime]
    bucket_seconds: float
    resolution: str
    rolled_until: datetime | None
    lines: list[Line]

    def covered_seconds(self) -> list[float]:
        """How much of each bucket is counted: all of it, but for the newest."""
        end = self.rolled_until.timestamp() if self.rolled_until else 0.0
        parts = (end - start.timestamp() for start in self.starts)
        return [max(0.0, min(self.bucket_seconds, part)) for part in parts]


Filters = Mapping[Dimension, str]


def fleet_usage(
    *,
    team_ids: Sequence[int],
    since: datetime,
    until: datetime,
    max_points: int = 300,
    split: Dimension | None = None,
    filters: Filters | None = None,
    most: int = 6,
    resolution: Resolution | None = None,
) -> Usage:
    """The `most` largest parts by GPU-hours, largest first, then OTHERS; one line ALL without a split.

    Raises ValueError for an empty span and for fewer than two points.
    """
    span = _span(since, until, max_points, resolution)
    reach = dict(FleetRollupProgress.objects.values_list("resolution", "rolled_until"))
    keys = _keys(team_ids, split, filters or {})
    found: dict[str | None, list[Bucket | None]] = {}
    segments = _segments(span, reach)
    kept: set[str | None] = _largest(_hours(keys, segments), most) if split else {ALL}
    for key, number, bucket in _rows(_merged_keys(keys, kept), span, segments):
        column = found.setdefault(key, [None] * span.count)
        if held := column[number]:
            held.add(bucket)
        else:
            column[number] = bucket
    lines = [Line(key, column) for key, column in found.items()]
    lines.sort(key=lambda line: (line.key == OTHERS, -sum(line.total().seconds.values())))
    return Usage(span.starts, float(span.bucket), span.resolution.name, max(reach.values(), default=None), lines)


def dimension_values(*, team_ids: Sequence[int]) -> dict[Dimension, list[str]]:
    """Every value that the teams' GPUs ever had, as filters and splits know them."""
    rows = list(RollupGroup.objects.filter(team_id__in=team_ids).values_list(*_COLUMNS.values()))
    return {
        dimension: sorted({_value(row[position]) for row in rows if row[position] != ""})
        for position, dimension in enumerate(_COLUMNS)
    }


def _value(stored: Any) -> str:
    return NO_PROJECT if stored is None else str(stored)


def _span(since: datetime, until: datetime, max_points: int, resolution: Resolution | None) -> Span:
    seconds = (until - since).total_seconds()
    if seconds <= 0:
        raise ValueError("until must be later than since")
    if max_points < 2:
        raise ValueError("max_points must be 2 at least")
    kept = settings.ROLLUP_5MIN_RETENTION_DAYS * 86_400
    fine = until - since <= LONGEST_FIVE_MINUTES and (timezone.now() - since).total_seconds() <= kept
    chosen = resolution or (FIVE_MINUTES if fine else HOUR)
    width = bucket_size(span_seconds=seconds, max_points=max_points, interval_seconds=0, resolution=chosen)
    return Span(since, until, max(width, chosen.seconds), chosen)


def _segments(span: Span, reach: Mapping[str, datetime]) -> list[Segment]:
    """Hours as far as they are counted, then five minutes; nothing finer."""
    start, end = span.start_of(0), span.start_of(span.count)
    found: list[Segment] = []
    for resolution in (HOUR, FIVE_MINUTES) if span.resolution == HOUR else (FIVE_MINUTES,):
        until = min(reach.get(resolution.name, start), end)
        if until > start:
            found.append(Segment(resolution, start, until))
            start = until
    return found


def _keys(team_ids: Sequence[int], split: Dimension | None, filters: Filters) -> dict[int, str | None]:
    """Group id -> the line that it counts to."""
    columns = list(_COLUMNS)
    rows = RollupGroup.objects.filter(team_id__in=team_ids).values_list("id", *_COLUMNS.values())
    return {
        pk: _value(values[columns.index(split)]) if split else ALL
        for pk, *values in rows
        if all(_value(values[columns.index(name)]) == wanted for name, wanted in filters.items())
    }


def _largest(hours: Mapping[str | None, float], most: int) -> set[str | None]:
    ranked = sorted((key for key in hours if key != OTHERS), key=lambda key: -hours[key])
    return set(ranked[:most])


def _merged_keys(keys: Mapping[int, str | None], kept: set[str | None]) -> dict[int, str | None]:
    return {pk: key if key in kept else OTHERS for pk, key in keys.items()}


_TOTALS = """
SELECT group_id, sum({seconds}) FROM {table}
WHERE group_id = ANY({ids}) AND bucket_at >= {since} AND bucket_at < {until} GROUP BY group_id
"""
_ROWS = """
SELECT line.number, extract(epoch FROM date_bin(make_interval(secs => {bucket}), bucket_at, 'epoch'))::bigint / {bucket},
    sum(power_watts), count(DISTINCT bucket_at) FILTER (WHERE power_watts IS NOT NULL), {sums}, ARRAY[{bins}]
FROM {table} JOIN unnest({ids}::bigint[], {numbers}::int[]) line (group_id, number) USING (group_id)
WHERE bucket_at >= {since} AND bucket_at < {until} GROUP BY 1, 2
"""


def _hours(keys: Mapping[int, str | None], segments: Iterable[Segment]) -> dict[str | None, float]:
    found: dict[str | None, float] = defaultdict(float)
    seconds = sql.SQL(" + ").join(map(sql.Identifier, SECONDS_COLUMNS.values()))
    for segment in segments:
        for pk, total in _fetch(_TOTALS, segment, list(keys), seconds=seconds):
            found[keys[pk]] += total
    return found


def _rows(
    keys: Mapping[int, str | None], span: Span, segments: Iterable[Segment]
) -> Iterable[tuple[str | None, int, Bucket]]:
    names: list[str | None] = list(dict.fromkeys(keys.values()))
    sums = sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in SECONDS_COLUMNS.values())
    bins = sql.SQL(", ").join(sql.SQL(f"sum(utilization_gpus[{number + 1}])") for number in range(UTILIZATION_BINS))
    parts = {
        "bucket": sql.Literal(span.bucket),
        "numbers": sql.Literal([names.index(key) for key in keys.values()]),
        "sums": sums,
        "bins": bins,
    }
    for segment in segments:
        width = segment.resolution.seconds
        for number, bucket, watts, ticks, *seconds, counts in _fetch(_ROWS, segment, list(keys), **parts):
            spent = {state: float(part) for state, part in zip(SECONDS_COLUMNS, seconds, strict=True) if part}
            weighed = [count * width for count in counts]
            yield (
                names[number],
                bucket - span.first,
                Bucket(defaultdict(float, spent), weighed, (watts or 0.0) * width, ticks * float(width)),
            )


def _fetch(query: str, segment: Segment, ids: list[int], **parts: sql.Composable) -> list[tuple[Any, ...]]:
    if not ids:
        return []
    statement = sql.SQL(query).format(
        table=sql.Identifier(f"fleet_rollup_{segment.resolution.name}"),
        ids=sql.Literal(ids),
        since=sql.Literal(segment.since),
        until=sql.Literal(segment.until),
        **parts,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
