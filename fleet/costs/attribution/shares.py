"""The parts of an hour of a shared machine, by who held it or whose processes ran on it. Pure; what is left over is idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
# A share is stored with eight digits.
UNITS = 10**8
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Held:
    """A hold on the machine in [start, end). No end: it goes on."""

    owner_id: int | None
    job: str
    start: datetime
    end: datetime | None = None

    def covers(self, moment: datetime) -> bool:
        return self.start <= moment and (self.end is None or moment < self.end)


Holder = tuple[int | None, str]


def held_shares(holds: Sequence[Held], start: datetime, end: datetime) -> dict[Holder, Fraction]:
    """Parts of [start, end) by owner and job. Each moment is shared equally by its owners, and an owner's part by their jobs."""
    edges = {moment for hold in holds for moment in (hold.start, hold.end) if moment and start < moment < end}
    moments = sorted({start, end, *edges})
    parts: dict[Holder, Fraction] = defaultdict(Fraction)
    for begins, ends in pairwise(moments):
        lasts = Fraction((ends - begins) // MICROSECOND, (end - start) // MICROSECOND)
        for holder, part in _moment(holds, begins).items():
            parts[holder] += part * lasts
    return dict(parts)


def _moment(holds: Sequence[Held], moment: datetime) -> dict[Holder, Fraction]:
    jobs: dict[int | None, set[str]] = defaultdict(set)
    for hold in holds:
        if hold.covers(moment):
            jobs[hold.owner_id].add(hold.job)
    return {(owner, job): Fraction(1, len(jobs) * len(names)) for owner, names in jobs.items() for job in names}


def measured_shares(gpu_seconds: Mapping[K, float], looked_at: float) -> dict[K, Fraction]:
    """Parts of the GPU-seconds that were looked at. What nobody looked at in the hour is taken to be like the rest of it."""
    used = {key: Fraction(seconds) for key, seconds in gpu_seconds.items() if seconds > 0}
    # Sums of floats may come out a hair above what was looked at.
    whole = max(Fraction(looked_at), sum(used.values(), Fraction(0)))
    return {key: seconds / whole for key, seconds in used.items()}


def rounded(parts: Mapping[K, Fraction]) -> dict[K, Decimal]:
    """To eight digits, none above its part but where all of them make up the hour: then they still do. Parts that come to 0 are left out."""
    units = {key: int(part * UNITS) for key, part in parts.items()}
    missing = int(sum(parts.values(), Fraction(0)) * UNITS) - sum(units.values())
    for key in sorted(units, key=lambda key: parts[key] * UNITS - units[key], reverse=True)[:missing]:
        units[key] += 1
    return {key: Decimal(count).scaleb(-8) for key, count in units.items() if count}
