"""How often Celery's tasks ran, how they ended and how long they took. A task that was killed for its time limit is not in it: its process died."""

from __future__ import annotations

import time
from typing import Any

from celery.signals import task_postrun, task_prerun

from fleet.meters import meters

# Seconds; the last two are the limits of most tasks and of the sort of a day.
BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 540, 3_300)

_began: dict[str, float] = {}


def bucket_of(seconds: float) -> str:
    """The upper bound, as Prometheus writes it."""
    return next((str(float(bound)) for bound in BUCKETS if seconds <= bound), "+Inf")


@task_prerun.connect
def note_start(task_id: str, **_signal: Any) -> None:
    _began[task_id] = time.monotonic()


@task_postrun.connect
def note_end(task_id: str, task: Any, state: str | None = None, **_signal: Any) -> None:
    began = _began.pop(task_id, None)
    meters.count("task_runs", task=task.name, result=(state or "unknown").lower())
    if began is not None:
        seconds = time.monotonic() - began
        meters.count("task_seconds", task=task.name, le=bucket_of(seconds))
        meters.count("task_seconds_sum", seconds, task=task.name)
    # A worker's child may be replaced after any task.
    meters.flush(now=time.time())
