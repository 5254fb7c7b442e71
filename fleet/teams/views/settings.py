"""The first tab of Settings: the team itself."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.forms import TeamForm
from fleet.teams.models import Role
from fleet.teams.teams import update_team


@require_safe
def team_settings(request: TeamRequest) -> HttpResponse:
    team = request.team
    return draw(request, TeamForm(initial={"name": team.name, "currency": team.currency, "time_zone": team.time_zone}))


@require_POST
@requires(Role.ADMIN)
def save_team(request: TeamRequest) -> HttpResponse:
    form = TeamForm(request.POST)
    if not form.is_valid():
        return draw(request, form, status=422)
    update_team(actor=Actor.of_page(request), team=request.team, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("team_settings", request.team.slug)


def draw(request: TeamRequest, form: TeamForm, status: int = 200) -> HttpResponse:
    context = {"nav": "settings", "tab": "team", "form": form, "zones": sorted(available_timezones())}
    return render(request, "settings/team.html", context, status=status)
