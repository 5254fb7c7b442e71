"""What a policy would have stopped, and when: quiet times of the past under its window, grace and office hours. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.idle.backtest.outcomes import WRONG_WITHIN_SECONDS
from fleet.idle.dryrun.evidence import BUCKET
from fleet.idle.dryrun.quiet import HOUR, Ending, History, Quiet
from fleet.idle.hours import OfficeHours, office_ends

WRONG_WITHIN = timedelta(seconds=WRONG_WITHIN_SECONDS)
JOB = "job"


@dataclass(frozen=True, slots=True)
class Terms:
    """`grace`: from the warning to the stop. In `office` hours what is idle is told and not stopped; after them it is warned again."""

    window: timedelta
    grace: timedelta = timedelta()
    office: OfficeHours | None = None


class Judged(StrEnum):
    RIGHT = "right"
    # Right so far: still idle.
    GOES_ON = "goes_on"
    # Work came back within half an hour.
    WRONG = "wrong"
    # Nobody can tell what came within half an hour.
    UNCLEAR = "unclear"


def judged(ending: Ending, off: timedelta) -> Judged:
    """Of a stop after which a machine would have been `off` for so long."""
    if off > WRONG_WITHIN or ending is Ending.OFF:
        return Judged.GOES_ON if ending is Ending.NOW else Judged.RIGHT
    return {Ending.RETURN: Judged.WRONG, Ending.NOW: Judged.GOES_ON}.get(ending, Judged.UNCLEAR)


@dataclass(frozen=True, slots=True)
class Stop:
    """[at, until): off. `run`: the job that it would have hit, where one is known by name."""

    instance_id: int
    gpus: int
    quiet_since: datetime
    at: datetime
    until: datetime
    ending: Ending
    run: str = ""

    @property
    def judged(self) -> Judged:
        return judged(self.ending, self.until - self.at)

    @property
    def is_wrong(self) -> bool:
        return self.judged is Judged.WRONG

    @property
    def gpu_hours(self) -> float:
        return (self.until - self.at) / HOUR * self.gpus


@dataclass(frozen=True, slots=True)
class Asked:
    """Idle in office hours: told, and nothing done until they were over."""

    instance_id: int
    at: datetime


def simulate(histories: Iterable[History], terms: Terms) -> tuple[list[Stop], list[Asked]]:
    """Stops in the order of time."""
    stops, asked = [], []
    for history in histories:
        for quiet in history.quiet:
            at, told = due(quiet, terms)
            if told is not None:
                asked.append(Asked(history.instance_id, told))
            if at is not None:
                stops.append(stop_of(history, quiet, at))
    return sorted(stops, key=lambda one: one.at), sorted(asked, key=lambda one: one.at)


def due(quiet: Quiet, terms: Terms) -> tuple[datetime | None, datetime | None]:
    """(when it would have been stopped, when somebody would have been asked instead); None: it was used again before, or never."""
    told = None
    warned = max(quiet.start + terms.window, quiet.not_before or quiet.start)
    while warned < quiet.end:
        at = warned + terms.grace
        over = open_until(terms.office, (warned, at))
        if over is None:
            return (at if at < quiet.end else None), told
        told, warned = told or warned, over
    return None, told


def open_until(office: OfficeHours | None, moments: Iterable[datetime]) -> datetime | None:
    """When the office hours end that any of these moments lies in."""
    if office is None:
        return None
    return next((ends for at in moments if (ends := office_ends(office, at)) is not None), None)


def stop_of(history: History, quiet: Quiet, at: datetime) -> Stop:
    found = Stop(history.instance_id, history.gpus, quiet.start, at, quiet.end, quiet.ending)
    return replace(found, run=run_hit(history, found)) if found.is_wrong else found


def run_hit(history: History, stop: Stop) -> str:
    """The job that held the machine when work came back, which is some time within the last bucket."""
    jobs = (one for one in history.holds if one.kind == JOB and one.touches(stop.at, stop.until + BUCKET))
    return next((one.name for one in jobs), "")
