"""Idle: what rent buys nothing now, which machines, and what is about to be done about it."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from fleet import panels
from fleet.pages.fleet import fleet_of
from fleet.pages.idle.lead import Lead
from fleet.pages.idle.policies import policy_lines
from fleet.pages.idle.proofs import proofs
from fleet.pages.idle.quiet import quiet_since
from fleet.pages.idle.rows import rows_of, unjudged_of
from fleet.pages.idle.savings import month_saved
from fleet.pages.idle.stops import PLANNED_SHOWN, back_an_hour, called_off, planned_acts, resting, under_way
from fleet.pages.idle.wasters import wasters_of
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role

PAGE_SIZE = 50


@require_safe
def idle(request: TeamRequest) -> HttpResponse:
    moved = moving(request)
    policies = policy_lines(request.team, now=moved["now"])
    context = {"nav": "idle", "tab": "idle", "panels": panels.idle_panels, "policies": policies, **moved}
    return render(request, "idle/idle.html", context)


@require_safe
def idle_pulse(request: TeamRequest) -> HttpResponse:
    """The parts of the page that change by themselves, and the strip above it."""
    return render(request, "idle/pulse.html", moving(request))


def moving(request: TeamRequest) -> Context:
    fleet, team = fleet_of(request), request.team
    now, may_act = fleet.at, request.membership.can(Role.OPERATOR)
    wasters = wasters_of(fleet)
    stops, plans = under_way(team, now=now), planned_acts(request.membership, now=now)
    page = Paginator(wasters, PAGE_SIZE).get_page(request.GET.get("page"))
    by_machine = {one.stop.instance_id: one for one in stops}
    return {
        "fleet": fleet,
        "now": now,
        "lead": Lead(fleet, wasters, len(stops), len(plans)),
        "page": page,
        "rows": rows_of(list(page), stops=by_machine, may_act=may_act, now=now),
        "unjudged": unjudged_of(fleet, wasters),
        "starved": [key for key in fleet.keys if key.state is GpuState.STARVED and key.count],
        "quiet_since": quiet_since(team, now=now) if not wasters else None,
        "stops": stops,
        "plans": plans[:PLANNED_SHOWN],
        "more_plans": max(0, len(plans) - PLANNED_SHOWN),
        "resting": resting(team, now=now),
        "called_off": called_off(team, now=now),
        "back": back_an_hour(stops, plans),
        "proofs": proofs(team, now=now),
        "saved": month_saved(team, now=now),
        "may_act": may_act,
        "planned_url": planned_url(request),
    }


def planned_url(request: TeamRequest) -> str:
    """The tab of all that is planned; "" where nobody registered one."""
    tab = next((item for item in panels.idle_tabs if item.name == "idle_planned"), None)
    return reverse(tab.url_name, args=[request.team.slug]) if tab else ""
