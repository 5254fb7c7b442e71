"""Whether the hours of a machine together are worth telling a person. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from statistics import fmean
from typing import NamedTuple

from fleet.quality.neighbours.score import CALM_AT, FLAGGED_AT

CROWDED_HOURS = CALM_HOURS = 3
# An alert that nothing was judged for so long says nothing of today.
SILENT_FOR = timedelta(hours=24)
LOUD_AT = 70
HOUR = timedelta(hours=1)


class Now(Enum):
    CROWDED = "crowded"
    CALM = "calm"
    SILENT = "silent"
    # Neither: what was told before stands.
    BETWEEN = "between"


class Standing(NamedTuple):
    """`mean` and `since` of the hours in a row up to the newest of which none was calm."""

    now: Now
    mean: int = 0
    since: datetime | None = None
    hours: int = 0

    @property
    def is_loud(self) -> bool:
        return self.mean >= LOUD_AT


def standing(scores: Mapping[datetime, int], *, newest: datetime) -> Standing:
    """`scores`: of hours that were judged, by where each begins; `newest`: the last hour that could be."""
    row: list[datetime] = []
    while scores.get(newest - len(row) * HOUR, 0) >= CALM_AT:
        row.append(newest - len(row) * HOUR)
    if sum(scores[hour] >= FLAGGED_AT for hour in row) >= CROWDED_HOURS:
        return Standing(Now.CROWDED, round(fmean(scores[hour] for hour in row)), row[-1], len(row))
    last = sorted((hour for hour in scores if newest - SILENT_FOR < hour <= newest), reverse=True)[:CALM_HOURS]
    if not last:
        return Standing(Now.SILENT)
    calm = len(last) == CALM_HOURS and all(scores[hour] < CALM_AT for hour in last)
    return Standing(Now.CALM if calm else Now.BETWEEN)
