"""The past attributed again: a form that first says what it would move."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.costs.attribution.again import Plan, plan_again, reattribute
from fleet.costs.attribution.forms import AgainForm
from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.standing import Names
from fleet.formats import amounts_text
from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role, Team

# What the use-case calls by another name than the form.
FIELDS = {"instances": "name_pattern"}
LAST_DAYS = timedelta(days=7)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def again(request: TeamRequest) -> HttpResponse:
    """What is sent without `save` only asks what it would move."""
    form = AgainForm(request.POST or None, team=request.team, initial=initial_of(request.GET))
    plan = planned(request, form) if form.is_valid() else None
    if plan and "save" in request.POST and _saved(request, form):
        messages.success(request, _("Attributed again. The sums follow within minutes."))
        return redirect("costs_rules", request.team.slug)
    context = {
        "nav": "costs",
        "tab": "rules",
        "form": form,
        "plan": plan_shown(request.team, plan) if plan else None,
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "costs/again.html", context, status=422 if form.errors else 200)


def initial_of(sent: QueryDict) -> dict[str, Any]:
    until = timezone.localtime(hour_of(timezone.now()))
    named = {name: sent[name] for name in ("name_pattern", "rule") if name in sent}
    return {**named, "start": until - LAST_DAYS, "until": until}


def planned(request: TeamRequest, form: AgainForm) -> Plan | None:
    """None, and an error in the form: it cannot be."""
    try:
        return plan_again(team=request.team, now=timezone.now(), **form.asked())
    except ValidationError as refusal:
        add_refusal(form, refusal)
    return None


def plan_shown(team: Team, plan: Plan) -> dict[str, Any]:
    names = Names.of(team, plan.estimate.by_whose)
    machines = dict(Instance.objects.filter(pk__in=plan.instances).order_by("name").values_list("pk", "name"))
    return {
        "machines": machines,
        "is_exact": plan.estimate.is_exact,
        "target": names.text(*plan.target),
        "moved": amounts_text(plan.estimate.moved_to(plan.target)),
        "lines": [
            (names.text(*whose), amounts_text(amounts), whose == plan.target)
            for whose, amounts in plan.estimate.by_whose.items()
        ],
    }


def _saved(request: TeamRequest, form: AgainForm) -> bool:
    try:
        reattribute(actor=Actor.of_page(request), team=request.team, now=timezone.now(), **form.asked())
    except ValidationError as refusal:
        add_refusal(form, refusal)
        return False
    return True


def add_refusal(form: AgainForm, refusal: ValidationError) -> None:
    named = refusal.message_dict if hasattr(refusal, "error_dict") else {"": refusal.messages}
    for field, texts in named.items():
        form.add_error(FIELDS.get(field, field) or None, texts)
