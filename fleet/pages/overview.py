from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from fleet import panels
from fleet.pages.attention import attention
from fleet.pages.downloads import chart_file
from fleet.pages.fleet import Fleet, fleet_of, load_fleet
from fleet.pages.projects import burn_by_project
from fleet.pages.sandbox import sandbox_of, set_sandbox_hidden
from fleet.pages.start import is_first_run, start_context
from fleet.pages.statechart import draw_states, states_file
from fleet.pages.timeline import entries
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

EVENTS_SHOWN = 7
EVENTS_SPAN = timedelta(days=2)


def overview(request: TeamRequest) -> HttpResponse:
    """The fleet and what needs a person; on a fresh installation, the three steps towards a fleet."""
    fleet = fleet_of(request)
    context = {"nav": "overview", "fleet": fleet, "panels": panels.overview_panels, "sandbox": _sandbox(request, fleet)}
    if is_first_run(fleet):
        return render(request, "pages/start.html", context | start_context(fleet))
    return render(request, "pages/overview.html", context | _moving(request, fleet))


def overview_pulse(request: TeamRequest) -> HttpResponse:
    """The parts of Overview that live samples alone do not move: figures, key, attention, events, projects."""
    fleet = fleet_of(request)
    return render(request, "pages/overview_pulse.html", {"fleet": fleet, **_moving(request, fleet)})


def overview_states(request: TeamRequest) -> HttpResponse:
    """GPUs by state over the day; loaded after the page, because it reads raw samples.

    `?format=csv|parquet&chart=states`: its figures as a file.
    """
    fleet = fleet_of(request)
    if (file := chart_file(request, partial(states_file, fleet), name=request.team.slug, until=fleet.at)) is not None:
        return file
    template = "components/states_chart.html" if request.htmx else "pages/states.html"
    return render(request, template, {"nav": "overview", "files_address": f"{request.path}?", **draw_states(fleet)})


@require_POST
@requires(Role.VIEWER)
def hide_sandbox(request: TeamRequest) -> HttpResponse:
    set_sandbox_hidden(actor=Actor.of_page(request), user=request.user, hidden=request.POST.get("hidden") != "0")
    return redirect("overview", request.team.slug)


def _moving(request: TeamRequest, fleet: Fleet) -> Context:
    return {
        **attention(request, fleet.at),
        "entries": entries(request, None, since=fleet.at - EVENTS_SPAN, until=fleet.at, limit=EVENTS_SHOWN),
        "projects": burn_by_project(fleet.machines),
    }


def _sandbox(request: TeamRequest, fleet: Fleet) -> Fleet | None:
    """The sample fleet below a real one, until the person hides it."""
    team = None if request.user.hides_sandbox else sandbox_of(request.team)
    return load_fleet(team=team, now=fleet.at) if team else None
