"""A month as a table of days and hours, of one machine or of the fleet: how busy, in which state, and what nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from fleet.pages.usage import Wanted
from fleet.pages.usagecharts import share_of
from fleet.states import IDLE_MONEY, GpuState
from fleet.teams.access import TeamRequest
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.series import TOGETHER, merged_gpu_series
from fleet.telemetry.state_series import state_series
from fleet.telemetry.usage import Bucket, fleet_usage
from fleet.words import state_word

DAYS = 30
HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True)
class Cell:
    """One hour. `state` took most of its GPU-hours; None: before there was anything, or no such hour."""

    state: GpuState | None = None
    busy_percent: int | None = None
    idle_percent: int | None = None

    @classmethod
    def of(cls, seconds: dict[GpuState, float], busy: float | None) -> Cell:
        total = sum(seconds.values())
        if not total:
            return cls()
        idle = share_of(Bucket(seconds), IDLE_MONEY)
        return cls(max(seconds, key=lambda state: seconds[state]), _whole(busy), _whole(idle))

    @property
    def words(self) -> str:
        """What the cell says, for those who hear the page and for the card."""
        if self.state is None:
            return _("nothing known")
        said = [state_word(self.state)]
        if self.busy_percent is not None:
            said.append(_("%(percent)d%% busy") % {"percent": self.busy_percent})
        if self.idle_percent:
            said.append(_("%(percent)d%% of the time idle") % {"percent": self.idle_percent})
        return ", ".join(said)


def _whole(percent: float | None) -> int | None:
    return None if percent is None else round(percent)


@dataclass(frozen=True, slots=True)
class Heat:
    """`rows[hour][day]`: hours of the reader's clock, days from the oldest to today."""

    days: list[date]
    rows: list[list[Cell]]

    @property
    def heads(self) -> list[tuple[date, bool]]:
        """Each day, and whether there is room to name it: Mondays, and the first day where it is not close to one."""
        return [(day, day.weekday() == 0 or (day == self.days[0] and day.weekday() < 4)) for day in self.days]

    @property
    def empty(self) -> bool:
        return all(cell.state is None for row in self.rows for cell in row)


def month_before(now: datetime, zone: tzinfo) -> datetime:
    """The midnight with which the first of DAYS days begins in this zone."""
    first = now.astimezone(zone).date() - timedelta(days=DAYS - 1)
    return datetime(first.year, first.month, first.day, tzinfo=zone)


def lay_out(hours: Iterable[tuple[datetime, Cell]], *, since: datetime, zone: tzinfo) -> Heat:
    """Each hour goes where the reader's clock stands at its start; of an hour that comes twice, in autumn, the later stays."""
    first = since.astimezone(zone).date()
    rows = [[Cell() for _day in range(DAYS)] for _hour in range(HOURS_A_DAY)]
    for start, cell in hours:
        local = start.astimezone(zone)
        day = (local.date() - first).days
        if 0 <= day < DAYS and cell.state:
            rows[local.hour][day] = cell
    return Heat([first + timedelta(days=day) for day in range(DAYS)], rows)


def points_of(since: datetime, until: datetime) -> int:
    """As many as there are hours, so that no bucket is longer than one."""
    return int((until - since).total_seconds() // HOUR.seconds) + 3


def fleet_heat(*, team_ids: Sequence[int], wanted: Wanted, now: datetime, zone: tzinfo) -> Heat:
    since = month_before(now, zone)
    found = fleet_usage(
        team_ids=team_ids,
        since=since,
        until=now,
        max_points=points_of(since, now),
        filters=wanted.filters,
        resolution=HOUR,
    )
    hours = [
        (start, Cell.of(dict(bucket.seconds), busy))
        for line in found.lines
        for start, bucket, busy in zip(found.starts, line.buckets, line.mean_utilization(), strict=True)
        if bucket
    ]
    return lay_out(hours, since=since, zone=zone)


def machine_heat(*, gpu_ids: Sequence[int], now: datetime, zone: tzinfo) -> Heat:
    """All GPUs of one machine together."""
    since = month_before(now, zone)
    span: dict[str, Any] = {"since": since, "until": now, "max_points": points_of(since, now)}
    busy = merged_gpu_series(gpu_ids=gpu_ids, fields=["utilization_percent"], **span)
    states = state_series(gpu_ids=gpu_ids, **span)
    means = dict(zip(busy.starts, busy.values[TOGETHER]["utilization_percent"], strict=True))
    columns = zip(*states.seconds.values(), strict=True) if states.seconds else ()
    hours = [
        (start, Cell.of(_added(column), means.get(start)))
        for start, column in zip(states.starts, columns, strict=False)
    ]
    return lay_out(hours, since=since, zone=zone)


def _added(column: Iterable[dict[GpuState, float] | None]) -> dict[GpuState, float]:
    whole = Bucket()
    for seconds in column:
        whole.add(Bucket(seconds or {}))
    return dict(whole.seconds)


def usage_heat(request: TeamRequest) -> HttpResponse:
    """The fleet's month, with the filters of the page around it."""
    wanted = Wanted.of(request.GET)
    zone = timezone.get_current_timezone()
    heat = fleet_heat(team_ids=[request.team.pk], wanted=wanted, now=timezone.now(), zone=zone)
    return draw_heat(request, heat, nav="usage", note=_("all GPUs together") if not wanted.filters else "")


def draw_heat(request: TeamRequest, heat: Heat, **more: Any) -> HttpResponse:
    template = "components/heat.html" if request.htmx else "pages/heat.html"
    return render(request, template, {"heat": heat, "states": list(GpuState), **more})
