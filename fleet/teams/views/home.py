from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import PersonRequest, teams_visible_to
from fleet.teams.audit import Actor
from fleet.teams.errors import Taken
from fleet.teams.forms import NameForm
from fleet.teams.models import Membership
from fleet.teams.teams import create_team


@require_safe
def home(request: PersonRequest) -> HttpResponse:
    """The team a person joined first, or the page that says they are in none."""
    found = Membership.objects.filter(user=request.user).select_related("team").order_by("created_at")
    membership = found.first()
    return redirect("overview", membership.team.slug) if membership else redirect("teams")


@require_safe
def teams(request: PersonRequest) -> HttpResponse:
    return draw(request, NameForm())


@require_POST
def new_team(request: PersonRequest) -> HttpResponse:
    form = NameForm(request.POST)
    if not form.is_valid():
        return draw(request, form, status=422)
    try:
        team = create_team(actor=Actor.of_page(request), name=form.cleaned_data["name"])
    except Taken as error:
        form.add_error("name", str(error))
        return draw(request, form, status=422)
    return redirect("overview", team.slug)


def draw(request: PersonRequest, form: NameForm, status: int = 200) -> HttpResponse:
    roles = dict(Membership.objects.filter(user=request.user).values_list("team_id", "role"))
    listed = [(team, roles.get(team.pk, "")) for team in teams_visible_to(request.user)]
    return render(request, "teams/teams.html", {"listed": listed, "form": form}, status=status)
