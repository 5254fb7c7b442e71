"""Schedules as the page and the API show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from fleet.idle.schedules.covering import clock_of, machines_of, may, zone_of
from fleet.idle.schedules.edges import Clock, Edge, next_edges
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.schedules.words import more_words, sentence, turn_words
from fleet.inventory.models import Instance
from fleet.teams.models import Team

EDGES_SHOWN = 3
NAMED = 8


@dataclass(frozen=True, slots=True)
class Line:
    """`beyond`: machines of it that it cannot stop or start, because their account or provider lets nobody."""

    schedule: PowerSchedule
    machines: tuple[Instance, ...]
    edges: tuple[str, ...]
    beyond: tuple[str, ...]
    sentence: str
    more: tuple[str, ...]
    # In words, where it is not the clock of the team that edges are shown on.
    own_zone: str

    @property
    def count(self) -> int:
        return len(self.machines)

    @property
    def names(self) -> list[str]:
        return [machine.name for machine in self.machines[:NAMED]]

    @property
    def rest(self) -> int:
        return max(self.count - NAMED, 0)


def lines_of(team: Team, now: datetime) -> list[Line]:
    rows = PowerSchedule.objects.filter(team=team, removed_at=None).select_related("team", "project")
    return [line_of(schedule, now) for schedule in rows.order_by("name", "pk")]


def line_of(schedule: PowerSchedule, now: datetime) -> Line:
    machines, zone = machines_of(schedule), ZoneInfo(schedule.team.time_zone)
    clock = clock_of(schedule)
    turns = [turn for turn, at in (("start", clock.start), ("stop", clock.stop)) if at is not None]
    beyond = tuple(machine.name for machine in machines if not all(may(machine, turn) for turn in turns))
    own = str(zone_of(schedule))
    return Line(
        schedule,
        tuple(machines),
        tuple(edges_words(clock, now, zone)) if schedule.enabled else (),
        beyond,
        sentence(schedule),
        tuple(more_words(schedule)),
        own if own != str(zone) else "",
    )


def edges_words(clock: Clock, now: datetime, zone: ZoneInfo) -> list[str]:
    """The next ones, on the clock of `zone`."""
    return [turn_words(edge, zone) for edge in upcoming(clock, now)]


def upcoming(clock: Clock, now: datetime) -> list[Edge]:
    return next_edges(clock, now, EDGES_SHOWN)
