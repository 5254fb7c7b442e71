"""What is known of a run, as the rules of diagnosis need it. Pure; None = not read, which never counts as zero.

Times are seconds since the epoch, memory bytes, ratios 0-1, percent 0-100.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, median

from jobs.progress.point import Point


class Kind(StrEnum):
    TRAINING = "training"
    SERVING = "serving"
    NOTEBOOK = "notebook"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log. `number`: from 1, as the page shows it."""

    number: int
    text: str
    at: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Readings over time, in its order."""

    points: tuple[tuple[float, float], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.points)

    @property
    def values(self) -> list[float]:
        return [value for _at, value in self.points]

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.points else None

    @property
    def middle(self) -> float | None:
        return median(self.values) if self.points else None

    @property
    def last(self) -> float | None:
        return self.points[-1][1] if self.points else None

    @property
    def seconds(self) -> float:
        return self.points[-1][0] - self.points[0][0] if self.points else 0.0

    def share(self, *, at_least: float) -> float | None:
        """Of the readings, how many are at least that."""
        return sum(value >= at_least for value in self.values) / len(self.points) if self.points else None

    def share_below(self, limit: float) -> float | None:
        return sum(value < limit for value in self.values) / len(self.points) if self.points else None

    def since(self, moment: float) -> Series:
        return Series(tuple(point for point in self.points if point[0] >= moment))

    def until(self, moment: float) -> Series:
        return Series(tuple(point for point in self.points if point[0] < moment))


NONE = Series()


@dataclass(frozen=True, slots=True)
class GpuEvidence:
    """`hot`, `capped`: share of the readings in which the driver slowed the clocks for heat, or for power. `rated_watts`: of its model's board."""

    index: int
    name: str = ""
    utilization_percent: Series = NONE
    sm_activity: Series = NONE
    power_watts: Series = NONE
    power_limit_watts: float | None = None
    rated_watts: float | None = None
    memory_used_bytes: Series = NONE
    memory_total_bytes: float | None = None
    hot: float | None = None
    capped: float | None = None


@dataclass(frozen=True, slots=True)
class HostEvidence:
    """Of several machines the worst of each: one that is full stops them all. `link_bytes_per_second`: measured between them before the run."""

    cpu_percent: Series = NONE
    iowait_percent: Series = NONE
    pressure_io_percent: Series = NONE
    pressure_memory_percent: Series = NONE
    memory_used_bytes: Series = NONE
    memory_total_bytes: float | None = None
    disk_read_bytes_per_second: Series = NONE
    disk_busy_percent: Series = NONE
    network_bytes_per_second: Series = NONE
    link_bytes_per_second: float | None = None
    disk_used_ratio: Series = NONE


@dataclass(frozen=True, slots=True)
class ServingEvidence:
    """Of one endpoint. `requests`: finished a second; `failed`: of these, those that failed. `short_answers`: seconds that requests for one token took, one
    after the other, as it became ready.
    """

    running: Series = NONE
    waiting: Series = NONE
    kv_cache_ratio: Series = NONE
    requests: Series = NONE
    failed: Series = NONE
    ttft_p95_seconds: Series = NONE
    tpot_p95_seconds: Series = NONE
    e2e_p50_seconds: Series = NONE
    e2e_p95_seconds: Series = NONE
    # Of the process that serves: its part of the machine's memory, without what is set aside from the start.
    process_memory_bytes: Series = NONE
    short_answers: tuple[float, ...] = ()
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    kind: str
    code: int | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the planner said of this run. `terms`: bytes of one GPU by the planner's own names; rates are of all GPUs of the run together.

    `…_high`: the end of the estimate that is still expected. The last four are of serving.
    """

    memory_bytes: float | None = None
    memory_high_bytes: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    seconds_per_step: float | None = None
    seconds_per_step_high: float | None = None
    tokens_per_second: float | None = None
    steps: float | None = None
    hours: float | None = None
    # Share of a step in which GPUs only talk to each other.
    communication_share: float | None = None
    first_token_seconds: float | None = None
    seconds_per_token: float | None = None
    requests_at_a_time: float | None = None
    cache_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """`command`: what was launched. `lines`: the log, or its end. `points`: progress with the time at which it was read. `exit_code` None: it runs, or nobody knows.

    `settings`: what it was launched with, by the planner's names (batch_size, sequence_length, gpu_memory_utilization …).
    """

    kind: Kind
    command: str = ""
    lines: tuple[Line, ...] = ()
    points: tuple[tuple[float, Point], ...] = ()
    gpus: tuple[GpuEvidence, ...] = ()
    host: HostEvidence = field(default_factory=HostEvidence)
    serving: ServingEvidence | None = None
    events: tuple[Event, ...] = ()
    predicted: Predicted = field(default_factory=Predicted)
    settings: Mapping[str, float] = field(default_factory=dict)
    started_at: float | None = None
    now: float | None = None
    exit_code: int | None = None
    # Somebody, or its deadline, ended it: how its processes ended says nothing then.
    stopped: bool = False
    spot: bool = False
    # Of the quality room: 0 (nothing) to 100 on a shared host.
    neighbour_score: int | None = None
    machine_ended_at: float | None = None

    @property
    def steps(self) -> Series:
        """Seconds of a step over time: as the trainer says it, else from when steps were printed."""
        said = tuple((at, point.seconds_per_step) for at, point in self.points if point.seconds_per_step is not None)
        return Series(said) if said else Series(tuple(self._between()))

    def _between(self) -> Iterator[tuple[float, float]]:
        placed = [(at, point.step) for at, point in self.points if point.step is not None]
        for (before, first), (at, second) in itertools.pairwise(placed):
            if second > first and at > before:
                yield at, (at - before) / (second - first)

    @property
    def is_over(self) -> bool:
        return self.exit_code is not None or self.machine_ended_at is not None
