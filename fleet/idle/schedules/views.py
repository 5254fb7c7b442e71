"""Idle, Schedules: what each says in a sentence, what it is of, when it turns next, and the form in which people write them."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.idle.schedules.forms import ZONES, ScheduleForm
from fleet.idle.schedules.manage import remove_schedule, save_schedule
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.schedules.shown import line_of, lines_of
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# Whoever may stop a machine may say when it is stopped.
WRITES = Role.OPERATOR


@require_safe
def schedules(request: TeamRequest) -> HttpResponse:
    context = {
        "nav": "idle",
        "tab": "idle_schedules",
        "lines": lines_of(request.team, timezone.now()),
        "zone": request.team.time_zone,
        "may_change": request.membership.can(WRITES),
    }
    return render(request, "idle/schedules/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(WRITES)
def schedule_add(request: TeamRequest) -> HttpResponse:
    form = ScheduleForm(request.POST or None, team=request.team)
    if request.method == "POST" and form.is_valid() and _saved(request, form, None):
        return redirect("idle_schedules", request.team.slug)
    return _form_page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(WRITES)
def schedule_edit(request: TeamRequest, pk: int) -> HttpResponse:
    schedule = _schedule_or_404(request, pk)
    form = ScheduleForm(request.POST or None, team=request.team, schedule=schedule)
    if request.method == "POST" and form.is_valid() and _saved(request, form, schedule):
        return redirect("idle_schedules", request.team.slug)
    return _form_page(request, form, schedule)


@require_POST
@requires(WRITES)
def schedule_remove(request: TeamRequest, pk: int) -> HttpResponse:
    schedule = _schedule_or_404(request, pk)
    if remove_schedule(actor=Actor.of_page(request), schedule=schedule, now=timezone.now()):
        messages.success(request, _("Removed. What it had planned is called off."))
    return redirect("idle_schedules", request.team.slug)


def _schedule_or_404(request: TeamRequest, pk: int) -> PowerSchedule:
    rows = PowerSchedule.objects.select_related("team", "project").filter(removed_at=None)
    return get_object_or_404(rows, pk=pk, team=request.team)


def _saved(request: TeamRequest, form: ScheduleForm, schedule: PowerSchedule | None) -> bool:
    try:
        save_schedule(
            actor=Actor.of_page(request), team=request.team, said=form.said(), now=timezone.now(), schedule=schedule
        )
    except ValidationError as refusal:
        form.add_refusal(refusal)
        return False
    messages.success(request, _("Saved. It counts from now on; what came before is left as it is."))
    return True


def _form_page(request: TeamRequest, form: ScheduleForm, schedule: PowerSchedule | None) -> HttpResponse:
    context = {
        "nav": "idle",
        "tab": "idle_schedules",
        "form": form,
        "schedule": schedule,
        "line": line_of(schedule, timezone.now()) if schedule else None,
        "zone": request.team.time_zone,
        "zones": ZONES,
    }
    return render(request, "idle/schedules/edit.html", context, status=422 if form.errors else 200)
