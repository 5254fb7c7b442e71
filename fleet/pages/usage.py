"""What the fleet did over days: utilization across its GPUs, GPU-hours by state, power, and the month as a heat map."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.downloads import UnknownFormatError, file_response, format_of
from fleet.inventory.words import TENANCIES
from fleet.pages.downloads import refusal
from fleet.pages.usagecharts import Part, UsageChart, draw_usage, parts_of, states_chart
from fleet.providers.base import Tenancy
from fleet.providers.registry import adapters
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Project, Team
from fleet.telemetry.usage import NO_PROJECT, OTHERS, Dimension, Usage, dimension_values, fleet_usage
from fleet.telemetry.words import resolution_words

SPANS = {
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
DEFAULT_SPAN = "7d"
MAX_POINTS = 300
MOST_PARTS = 6
PERIOD_SECONDS = 300
DIMENSION_WORDS: dict[Dimension, str | Promise] = {
    Dimension.PROVIDER: gettext_lazy("Provider"),
    Dimension.PROJECT: gettext_lazy("Project"),
    Dimension.GPU_MODEL: gettext_lazy("GPU"),
    Dimension.TENANCY: gettext_lazy("Tenancy"),
}

SPLIT_TITLES: dict[Dimension, str | Promise] = {
    Dimension.PROVIDER: gettext_lazy("GPU-hours by provider"),
    Dimension.PROJECT: gettext_lazy("GPU-hours by project"),
    Dimension.GPU_MODEL: gettext_lazy("GPU-hours by GPU model"),
    Dimension.TENANCY: gettext_lazy("GPU-hours by tenancy"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reading of the address; what makes no sense in it is left out, never an error."""

    span: str = DEFAULT_SPAN
    split: Dimension | None = None
    filters: dict[Dimension, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        span, split = query.get("span", ""), query.get("split", "")
        return cls(
            span=span if span in SPANS else DEFAULT_SPAN,
            split=Dimension(split) if split in set(Dimension) else None,
            filters={name: value[:120] for name in Dimension if (value := query.get(name, ""))},
        )

    def query(self, **changes: str) -> str:
        """The address's query with these changes, beginning with "?"."""
        words: dict[str, str] = {"span": self.span, "split": self.split or ""} | changes
        words |= {name.value: wanted for name, wanted in self.filters.items()}
        return "?" + urlencode({name: str(word) for name, word in words.items() if word})


def usage(request: TeamRequest) -> HttpResponse:
    """`?format=csv|parquet&chart=<name>`: the figures of one chart as a file."""
    wanted = Wanted.of(request.GET)
    names = Names(request.team)
    drawn = draw(request.team, wanted, names)
    if (file := _file(request, drawn["every_chart"], wanted)) is not None:
        return file
    template = "pages/usage_charts.html" if request.htmx else "pages/usage.html"
    return render(request, template, {"nav": "usage", "wanted": wanted, **drawn, **_controls(request, wanted, names)})


class Names:
    """What the values of dimensions are called in one team."""

    def __init__(self, team: Team) -> None:
        self.projects = {str(pk): name for pk, name in Project.objects.filter(team=team).values_list("pk", "name")}

    def of(self, dimension: Dimension, value: str) -> str:
        if value == OTHERS:
            return _("others")
        if dimension is Dimension.PROJECT:
            return _("no project") if value == NO_PROJECT else self.projects.get(value, value)
        if dimension is Dimension.PROVIDER:
            adapter = adapters().get(value)
            return _(adapter.label) if adapter else value
        if dimension is Dimension.TENANCY and value in set(Tenancy):
            return str(TENANCIES[Tenancy(value)])
        return value


def draw(team: Team, wanted: Wanted, names: Names) -> dict[str, Any]:
    """The charts over the span until now, and with a split its parts as bars and small charts."""
    now = timezone.now()
    found = fleet_usage(
        team_ids=[team.pk],
        since=now - SPANS[wanted.span],
        until=now,
        max_points=MAX_POINTS,
        split=wanted.split,
        filters=wanted.filters,
        most=MOST_PARTS,
    )
    split = wanted.split
    parts = parts_of(found, lambda key: names.of(split, key or "") if split else _("all GPUs"))
    charts = draw_usage(found, parts, split=split is not None) if parts else []
    small = [_small(found, part, number) for number, part in enumerate(parts)] if split else []
    return {
        "charts": charts,
        "small": small,
        "parts": parts if split else [],
        "every_chart": [*charts, *small],
        "chart_json": {chart.name: chart.as_json() for chart in [*charts, *small]},
        "rolled_until": found.rolled_until,
        "period": PERIOD_SECONDS,
        "source": resolution_words(found.resolution),
        "shown_states": [state for state in GpuState if any(part.total.seconds.get(state) for part in parts)],
    }


def _small(found: Usage, part: Part, number: int) -> UsageChart:
    note = _("%(hours)s GPU-hours") % {"hours": part.hours_text}
    return states_chart(found, part.line.buckets, name=f"part-{number + 1}", title=part.name, note=note, height=130)


@dataclass(frozen=True, slots=True)
class Pick:
    """One select of the toolbar."""

    name: Dimension
    label: str
    chosen: str
    options: list[tuple[str, str]]


def _controls(request: TeamRequest, wanted: Wanted, names: Names) -> dict[str, Any]:
    known = dimension_values(team_ids=[request.team.pk])
    picks = [
        Pick(
            name,
            str(label),
            wanted.filters.get(name, ""),
            sorted(((value, names.of(name, value)) for value in known[name]), key=lambda option: option[1].lower()),
        )
        for name, label in DIMENSION_WORDS.items()
    ]
    return {
        "picks": picks,
        "spans": [(name, f"{name[:-1]} {name[-1]}", wanted.query(span=name)) for name in SPANS],
        "splits": [("", _("nothing"))] + [(name.value, str(label)) for name, label in DIMENSION_WORDS.items()],
        "split_title": SPLIT_TITLES[wanted.split] if wanted.split else "",
        "files_address": reverse("usage", args=[request.team.slug]) + wanted.query(),
        "heat_address": reverse("usage_heat", args=[request.team.slug]) + wanted.query(span="", split=""),
    }


def _file(request: HttpRequest, charts: list[UsageChart], wanted: Wanted) -> HttpResponse | None:
    try:
        kind = format_of(request)
    except UnknownFormatError as error:
        return refusal(str(error))
    if kind is None:
        return None
    name = request.GET.get("chart", "")
    found = next((chart for chart in charts if chart.name == name), None)
    if found is None:
        known = ", ".join(chart.name for chart in charts) or _("none, nothing is counted yet")
        return refusal(_("chart: give one of %(known)s.") % {"known": known})
    return file_response(found.file, kind=kind, name=f"usage-{name}-{wanted.span}-{timezone.now():%Y-%m-%dT%H%MZ}")
