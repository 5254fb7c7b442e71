"""Idle, Planned: everything that is planned for machines, soonest first, and people's word on each."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.idle.planned.forms import PlanForm
from fleet.idle.planned.people import cancel, plan_by_hand, put_off_by, role_for
from fleet.idle.planned.shown import lines_of
from fleet.idle.policies.uses import extend_lease
from fleet.inventory.plans.models import PlannedAction
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.fields import one_line
from fleet.teams.models import Role

REASON_LENGTH = 300
PUT_OFF_HOURS = (1, 4, 12, 24)
EXTENDS_BY = timedelta(hours=24)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.VIEWER)
def planned(request: TeamRequest) -> HttpResponse:
    may_plan = request.membership.can(Role.OPERATOR)
    if request.method == "POST" and not may_plan:
        raise PermissionDenied
    form = PlanForm(request.POST or None, team=request.team)
    if request.method == "POST" and form.is_valid() and _planned(request, form):
        return redirect("idle_planned", request.team.slug)
    ahead, ended = lines_of(request, timezone.now())
    context = {
        "nav": "idle",
        "tab": "idle_planned",
        "lines": ahead,
        "ended": ended,
        "form": form,
        "may_plan": may_plan,
        "hours": PUT_OFF_HOURS,
        "zone": request.team.time_zone,
    }
    return render(request, "idle/planned/list.html", context, status=422 if form.errors else 200)


@require_POST
@requires(Role.OPERATOR)
def planned_cancel(request: TeamRequest, pk: int) -> HttpResponse:
    action = _action_or_404(request, pk)
    reason = one_line(request.POST.get("reason", ""))[:REASON_LENGTH]
    if not reason:
        messages.error(request, _("Give a reason: it is kept and shown. Nothing was changed."))
    elif cancel(actor=Actor.of_page(request), action=action, reason=reason, now=timezone.now()):
        messages.success(request, _("Called off."))
    else:
        messages.info(request, _("Nothing changed: it had ended, or was taken up already."))
    return redirect("idle_planned", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def planned_postpone(request: TeamRequest, pk: int) -> HttpResponse:
    action = _action_or_404(request, pk)
    hours = request.POST.get("hours", "")
    if hours not in map(str, PUT_OFF_HOURS):
        messages.error(request, _("Choose by how many hours. Nothing was changed."))
    elif put_off_by(actor=Actor.of_page(request), action=action, hours=int(hours), now=timezone.now()):
        messages.success(request, _("Put off."))
    else:
        messages.info(request, _("Nothing changed: it had ended, or was taken up already."))
    return redirect("idle_planned", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def planned_extend(request: TeamRequest, pk: int) -> HttpResponse:
    """The machine may run a day longer than it was to: its end is planned anew."""
    action, now = _action_or_404(request, pk), timezone.now()
    until = max(now, action.due_at) + EXTENDS_BY
    try:
        extend_lease(actor=Actor.of_page(request), instance=action.instance, until=until, now=now)
    except ValidationError as refusal:
        messages.error(request, " ".join(refusal.messages))
    else:
        cancel(actor=Actor.system("leases"), action=action, reason="lifted", now=now)
        messages.success(request, _("It may run a day longer."))
    return redirect("idle_planned", request.team.slug)


def _action_or_404(request: TeamRequest, pk: int) -> PlannedAction:
    """Raises PermissionDenied where only an admin has a word."""
    rows = PlannedAction.objects.select_related("team", "instance__account", "instance__team")
    action = get_object_or_404(rows, pk=pk, team=request.team)
    if not request.membership.can(role_for(action)):
        raise PermissionDenied
    return action


def _planned(request: TeamRequest, form: PlanForm) -> bool:
    try:
        plan_by_hand(actor=Actor.of_page(request), now=timezone.now(), **form.cleaned_data)
    except ValidationError as refusal:
        form.add_refusal(refusal)
        return False
    messages.success(request, _("Planned. It stands below and in the calendar."))
    return True
