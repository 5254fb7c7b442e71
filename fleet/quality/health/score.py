"""What went wrong on machines, counted, and what it says of a day and of a provider. Pure: no Django, no clock.

A fault is what a renter cannot mend: the card, its memory, its place on the bus, the host. What programs do wrong is counted and held against nobody.
Bounds are judgement (docs/quality.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

HOURS_A_DAY = 24


class Kind(StrEnum):
    XID = "xid"
    PROGRAM_XID = "program_xid"
    ECC = "ecc"
    REMAP = "remap"
    LOST = "lost"
    RESET = "reset"
    HUNG = "hung"
    NOT_AS_RENTED = "not_as_rented"
    SHORT = "short"
    UNREACHABLE = "unreachable"
    FAILED_START = "failed_start"


FAULT_KINDS = frozenset({Kind.XID, Kind.ECC, Kind.REMAP, Kind.LOST, Kind.RESET, Kind.HUNG, Kind.NOT_AS_RENTED})
FAULTS = "faults"
# A broken link names every card, a lost one comes with an XID and a reset: of one machine, faults this close are one.
ONE_FAULT_WITHIN = timedelta(hours=1)

LEAST_GPU_HOURS = 1.0
A_FAULT_COSTS, THROTTLING_COSTS, LOSS_COSTS = 30, 40, 60

# Fewer GPU-days than this say nothing of a provider.
LEAST_GPU_DAYS = 30.0
# What is not known yet is taken as so many GPU-days at the middle of the scale, so that one fault or none in a month decides little.
PRIOR_GPU_DAYS, PRIOR_FAULTS = 100.0, 0.5
# Faults in 100 GPU-days: below the first five stars, below the second four, …
STAR_BOUNDS = (0.1, 0.3, 1.0, 3.0)
MUCH_THROTTLING, MUCH_LOSS = 0.05, 0.01


class Happening(NamedTuple):
    at: datetime
    kind: Kind


class Sums(NamedTuple):
    """Over some time: GPU-days in which readings came, faults, and the seconds of GPUs held back or lost."""

    gpu_days: float
    faults: int
    throttled_seconds: float = 0.0
    lost_seconds: float = 0.0

    @property
    def gpu_seconds(self) -> float:
        return self.gpu_days * HOURS_A_DAY * 3600


def counts_of(happenings: Iterable[Happening]) -> dict[str, int]:
    """Of one machine: how often each kind, and under FAULTS how many faults they were."""
    ordered = sorted(happenings)
    counts = Counter(str(one.kind) for one in ordered)
    last: datetime | None = None
    for one in ordered:
        if one.kind in FAULT_KINDS:
            counts[FAULTS] += last is None or one.at - last > ONE_FAULT_WITHIN
            last = one.at
    return {kind: count for kind, count in counts.items() if count}


def day_score(gpu_hours: float, *, faults: int, throttled_seconds: float, lost_seconds: float) -> int | None:
    """100: nothing went wrong. None: too little was read of the day to say so."""
    if gpu_hours < LEAST_GPU_HOURS:
        return None
    gpu_seconds = gpu_hours * 3600
    costs = (
        A_FAULT_COSTS * faults
        + THROTTLING_COSTS * min(1.0, throttled_seconds / gpu_seconds)
        + LOSS_COSTS * min(1.0, lost_seconds / gpu_seconds)
    )
    return max(0, round(100 - costs))


def faults_per_100_gpu_days(sums: Sums) -> float:
    """Shrunk towards the middle of the scale by how little is known."""
    return 100 * (sums.faults + PRIOR_FAULTS) / (sums.gpu_days + PRIOR_GPU_DAYS)


def stars(sums: Sums) -> int | None:
    """1 (bad) to 5 (good). None: too few GPU-days."""
    if sums.gpu_days < LEAST_GPU_DAYS:
        return None
    rate = faults_per_100_gpu_days(sums)
    found = 5 - sum(rate >= bound for bound in STAR_BOUNDS)
    found -= sums.throttled_seconds >= MUCH_THROTTLING * sums.gpu_seconds
    found -= sums.lost_seconds >= MUCH_LOSS * sums.gpu_seconds
    return max(1, found)
