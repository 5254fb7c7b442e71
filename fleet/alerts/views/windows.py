"""Maintenance windows: planned, in force, and lately over."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.alerts.forms import WindowForm
from fleet.alerts.models import MaintenanceWindow
from fleet.alerts.windows import add_window, cancel_window
from fleet.teams.access import TeamRequest
from fleet.teams.audit import Actor
from fleet.teams.models import Role

OVER_SHOWN = timedelta(days=30)


@require_http_methods(["GET", "HEAD", "POST"])
def windows(request: TeamRequest) -> HttpResponse:
    """Everybody of the team sees them; who operates plans them."""
    now = timezone.now()
    form = WindowForm(request.POST or None, team=request.team, initial=WindowForm.initial_at(now, request.GET))
    if request.method == "POST" and form.is_valid() and _add(request, form):
        messages.success(request, _("Planned. What happens in it is recorded, and nobody is told."))
        return redirect("maintenance", request.team.slug)
    mine = MaintenanceWindow.objects.filter(team=request.team).select_related("instance", "account", "created_by")
    context = {
        "nav": "alerts",
        "form": form,
        "zone": timezone.get_current_timezone_name(),
        "may_act": request.membership.can(Role.OPERATOR),
        "coming": [(row, row.in_force(now)) for row in mine.filter(cancelled_at=None, ends_at__gt=now).order_by("starts_at")],
        "over": mine.filter(ends_at__gt=now - OVER_SHOWN).exclude(cancelled_at=None, ends_at__gt=now).order_by("-ends_at"),
    }  # fmt: skip
    return render(request, "alerts/windows.html", context, status=422 if form.errors else 200)


@require_POST
def window_cancel(request: TeamRequest, pk: int) -> HttpResponse:
    window = get_object_or_404(MaintenanceWindow.objects.select_related("team"), pk=pk, team=request.team)
    if cancel_window(actor=Actor.of_page(request), window=window, now=timezone.now()):
        messages.success(request, _("Called off: messages go out again."))
    else:
        messages.info(request, _("Nothing changed: the window is over or was called off already."))
    return redirect("maintenance", request.team.slug)


def _add(request: TeamRequest, form: WindowForm) -> bool:
    try:
        add_window(actor=Actor.of_page(request), team=request.team, now=timezone.now(), **form.asked())
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True
