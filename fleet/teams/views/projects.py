"""Projects, the cost centres of a team."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.errors import TeamsError
from fleet.teams.forms import NameForm
from fleet.teams.models import Project, Role
from fleet.teams.projects import archive_project, create_project, rename_project, restore_project


@require_safe
def projects(request: TeamRequest) -> HttpResponse:
    return draw(request, NameForm())


def draw(request: TeamRequest, form: NameForm, status: int = 200) -> HttpResponse:
    found = Project.objects.filter(team=request.team).order_by("name")
    context = {
        "nav": "settings",
        "tab": "projects",
        "form": form,
        "projects": found.filter(archived_at=None),
        "archived": found.filter(archived_at__isnull=False),
    }
    return render(request, "settings/projects.html", context, status=status)


@require_POST
@requires(Role.ADMIN)
def new_project(request: TeamRequest) -> HttpResponse:
    form = NameForm(request.POST)
    if not form.is_valid():
        return draw(request, form, status=422)
    try:
        create_project(actor=Actor.of_page(request), team=request.team, name=form.cleaned_data["name"])
    except TeamsError as error:
        form.add_error("name", str(error))
        return draw(request, form, status=422)
    return redirect("projects", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def rename(request: TeamRequest, project_id: int) -> HttpResponse:
    project = get_object_or_404(Project, pk=project_id, team=request.team)
    form = NameForm(request.POST)
    try:
        if form.is_valid():
            rename_project(actor=Actor.of_page(request), project=project, name=form.cleaned_data["name"])
            messages.success(request, _("Saved."))
        else:
            messages.error(request, _("A name has 2 to 80 letters. The project keeps the one it has."))
    except TeamsError as error:
        messages.error(request, str(error))
    return redirect("projects", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def archive(request: TeamRequest, project_id: int) -> HttpResponse:
    project = get_object_or_404(Project, pk=project_id, team=request.team)
    archive_project(actor=Actor.of_page(request), project=project)
    return redirect("projects", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def restore(request: TeamRequest, project_id: int) -> HttpResponse:
    project = get_object_or_404(Project, pk=project_id, team=request.team)
    restore_project(actor=Actor.of_page(request), project=project)
    return redirect("projects", request.team.slug)
