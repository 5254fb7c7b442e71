"""How GPUs spent the hours of the weeks before the first sample, each by its pattern: a pure function of the hour and a seed.

What the agents send for the last day is made from seconds (patterns.py). Weeks of that would be millions of samples, so that this says
only what is left of them after a day: how long a GPU was in each state, and how busy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi, sin

from fleet.sandbox import patterns
from fleet.sandbox.noise import scatter
from fleet.sandbox.patterns import DAY, HOUR, Pattern
from fleet.states import GpuState

# Of people in UTC, as the team's days are.
OPENS, CLOSES = 8, 19
# The night in which a job had ended and nobody was there to start the next.
IDLE_NIGHTS = 0.22
# A collective waited a whole day for a rank that was gone: so many days before the birth.
STALLED_DAY = 5


@dataclass(frozen=True, slots=True)
class Spent:
    """Shares (0-1) of an hour by state, which come to 1, and the mean utilization in percent."""

    shares: Mapping[GpuState, float]
    utilization_percent: float


Rhythm = Callable[[float, int], Spent]


def spent_of(pattern: Pattern, at: float, seed: int, *, born_at: float) -> Spent:
    """`at`: when the hour begins, like `born_at` in seconds since the epoch."""
    if pattern is patterns.stalled and at // DAY == born_at // DAY - STALLED_DAY:
        return Spent({GpuState.STALLED: 1.0}, 100.0)
    return RHYTHMS.get(pattern, in_batches)(at, seed)


def in_batches(at: float, seed: int) -> Spent:
    """Jobs day and night, but for nights in which one had ended early."""
    host = seed >> 8
    day, hour = divmod(at, DAY)
    if hour < OPENS * HOUR and scatter(int(day), host) < IDLE_NIGHTS:
        return resting(GpuState.FREE)
    checkpoints = 0.02 + 0.03 * scatter(int(at // HOUR), host)
    return working(1 - checkpoints, GpuState.HELD_IDLE, 96)


def waiting_for_disk(at: float, seed: int) -> Spent:
    starved = 0.7 + 0.2 * scatter(int(at // HOUR), seed >> 8)
    return Spent({GpuState.STARVED: starved, GpuState.WORKING: 1 - starved}, 34.0)


def by_requests(at: float, seed: int) -> Spent:
    """Busy by the hour of the day; the weights stay in memory throughout."""
    by_day = 0.62 + 0.3 * sin(2 * pi * (at / DAY - 0.3))
    return working(min(1.0, by_day + 0.08 * scatter(int(at // HOUR), seed)), GpuState.HELD_IDLE, 58)


def by_people(at: float, seed: int) -> Spent:
    """Somebody works on it on working days and leaves the notebook open overnight."""
    # The epoch began on a Thursday.
    is_weekend = (at // DAY + 3) % 7 >= 5
    if is_weekend or not OPENS * HOUR <= at % DAY < CLOSES * HOUR:
        return resting(GpuState.HELD_IDLE)
    return working(0.3 + 0.4 * scatter(int(at // HOUR), seed), GpuState.HELD_IDLE, 47)


def now_and_then(at: float, seed: int) -> Spent:
    """A job on some days; nothing on the GPU in between."""
    day, hour = divmod(at, DAY)
    works = scatter(int(day), seed >> 8) < 0.6 and OPENS * HOUR <= hour < CLOSES * HOUR
    return working(0.9, GpuState.FREE, 90) if works else resting(GpuState.FREE)


def working(share: float, otherwise: GpuState, percent: float) -> Spent:
    """`percent`: how busy it is while it works."""
    return Spent({GpuState.WORKING: share, otherwise: 1 - share}, round(share * percent, 1))


def resting(state: GpuState) -> Spent:
    return Spent({state: 1.0}, 0.0)


RHYTHMS: dict[Pattern, Rhythm] = {
    patterns.starved: waiting_for_disk,
    patterns.serving: by_requests,
    patterns.notebook: by_people,
    patterns.forgotten_notebook: by_people,
    patterns.free: now_and_then,
}
