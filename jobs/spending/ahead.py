"""How long a run goes on: by how fast its steps come, else by what was planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from jobs.book.models import Attempt, Job, JobKind
from jobs.metrics.models import JobPoint

# Of the newest: how it goes now, not how it began.
POINTS = 200
HOUR, LONGEST = timedelta(hours=1), timedelta(days=3_650)
ENDLESS = frozenset({JobKind.SERVING, JobKind.NOTEBOOK})


def time_left(attempt: Attempt, now: datetime) -> timedelta | None:
    """None: it has ended, or nothing tells. A run that is past what was planned has nothing that tells."""
    if attempt.ended_at is not None:
        return None
    rows = JobPoint.objects.filter(attempt=attempt, step__isnull=False).order_by("-at", "-pk")
    points = list(rows.values("at", "step", "steps", "seconds_per_step")[:POINTS])
    left = left_by_steps(points, now)
    if left is None:
        left = left_by_plan(attempt, now)
    return _until_deadline(attempt.job, left, now)


def _until_deadline(job: Job, left: timedelta | None, now: datetime) -> timedelta | None:
    """What serves until it is stopped goes on until its deadline; of a run that ends by itself, the deadline is only the latest."""
    if job.deadline_at is None:
        return left
    until = max(job.deadline_at - now, timedelta(0))
    if left is None:
        return until if job.kind in ENDLESS else None
    return min(left, until)


def left_by_steps(points: Sequence[Mapping[str, Any]], now: datetime) -> timedelta | None:
    """`points`: the newest first. What a run prints may be any number: nothing that takes longer than LONGEST is believed."""
    if not points or points[0]["steps"] is None:
        return None
    newest, oldest = points[0], points[-1]
    steps_left: int = newest["steps"] - newest["step"]
    seconds: float | None = newest["seconds_per_step"]
    told_every = seconds or 0.0
    passed: float = (newest["at"] - oldest["at"]).total_seconds()
    if newest["step"] > oldest["step"] and passed > 0:
        seconds, told_every = passed / (newest["step"] - oldest["step"]), passed / (len(points) - 1)
    if seconds is None or not 0 <= seconds * steps_left <= LONGEST.total_seconds():
        return None
    # A run that tells nothing for longer than it used to stands, and its steps are still to come.
    gone = min((now - newest["at"]).total_seconds(), told_every)
    return timedelta(seconds=max(seconds * steps_left - gone, 0.0))


def left_by_plan(attempt: Attempt, now: datetime) -> timedelta | None:
    hours = attempt.job.predicted.get("hours")
    if not isinstance(hours, int | float) or attempt.started_at is None or not 0 <= hours <= LONGEST / HOUR:
        return None
    left = timedelta(hours=hours) - (now - attempt.started_at)
    return left if left > timedelta(0) else None
