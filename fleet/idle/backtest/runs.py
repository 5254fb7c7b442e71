"""Quiet runs in a recorded trace: how long each GPU did nothing, and how the quiet ended. Pure.

Work is a utilization above zero. A quiet run starts at the last working sample, or where the trace or a stretch of it begins. A gap
of more than three sampling steps is unknown: it ends the run, and what comes after it starts anew. The end of the trace is no return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleet.traces import Row, Trace

GAP_STEPS = 3
HOUR_SECONDS = 3600.0


class Ending(StrEnum):
    RETURN = "return"
    UNKNOWN = "unknown"  # a gap, or the end of the trace


@dataclass(frozen=True, slots=True)
class QuietRun:
    """`start` and `end`: seconds since the trace began."""

    start: float
    end: float
    ending: Ending

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PodRuns:
    """One pod: GPU-seconds that it was watched, and its quiet runs."""

    seconds: float
    runs: tuple[QuietRun, ...]

    @property
    def quiet_seconds(self) -> float:
        return sum(run.seconds for run in self.runs)


def runs_of(trace: Trace) -> Mapping[str, PodRuns]:
    step = trace.step_seconds
    read = {pod: [row for row in rows if row.utilization_percent is not None] for pod, rows in trace.pods.items()}
    return {
        pod: PodRuns(rows[-1].t - rows[0].t, tuple(quiet_runs(rows, step_seconds=step)))
        for pod, rows in read.items()
        if rows
    }


def quiet_runs(rows: Sequence[Row], *, step_seconds: float) -> Iterator[QuietRun]:
    """Of one pod, in the order of time; every row has a utilization. A run between two neighbouring working samples is none."""
    start = last = rows[0].t
    quiet = False
    for row in rows:
        if row.t - last > GAP_STEPS * step_seconds:
            if quiet:
                yield QuietRun(start, last, Ending.UNKNOWN)
            start, quiet = row.t, False
        if not row.utilization_percent:
            quiet = True
        else:
            if quiet:
                yield QuietRun(start, row.t, Ending.RETURN)
            start, quiet = row.t, False
        last = row.t
    if quiet:
        yield QuietRun(start, last, Ending.UNKNOWN)
