"""Points of progress: read from a node's new log lines as they come, or told by the job itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from jobs.book.models import Attempt
from jobs.metrics.models import JobPoint
from jobs.progress.point import Point
from jobs.progress.read import read_line

# In one reading of a log: a loop that prints every step by the thousand is thinned to what a chart can show.
MOST_AT_ONCE = 200
# Of an attempt: then every second one of the older half goes.
MOST = 20_000


def store_lines(*, attempt: Attempt, lines: Iterable[tuple[int, str]], at: datetime) -> int:
    """`lines`: (number, text), in order. All lie at the time at which they were read. Returns how many points were kept."""
    found = list(_points(lines))
    kept = found if len(found) <= MOST_AT_ONCE else [*found[:: -(-len(found) // MOST_AT_ONCE)], found[-1]]
    JobPoint.objects.bulk_create(
        JobPoint(attempt=attempt, at=at, source="log", line=number, **values_of(point)) for number, point in kept
    )
    if kept:
        thin(attempt)
    return len(kept)


def _points(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Point]]:
    for number, text in lines:
        if (point := read_line(text)) is not None:
            yield number, point


def values_of(point: Point) -> dict[str, Any]:
    return {name: value for name, value in asdict(point).items() if value is not None}


def store_call(*, attempt: Attempt, point: Point, others: Mapping[str, float], at: datetime) -> JobPoint:
    """What the job itself told."""
    made = JobPoint.objects.create(attempt=attempt, at=at, source="call", others=dict(others), **values_of(point))
    thin(attempt)
    return made


def thin(attempt: Attempt) -> int:
    """The older half loses every second point: what is shown of it is as fine as a chart can draw."""
    points = JobPoint.objects.filter(attempt=attempt).order_by("at", "pk")
    ids = list(points.values_list("pk", flat=True)[: MOST + 1])
    if len(ids) <= MOST:
        return 0
    return JobPoint.objects.filter(pk__in=ids[: MOST // 2 : 2]).delete()[0]
