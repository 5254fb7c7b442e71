"""The rules of attribution: what each does, what it would change, made, changed, moved and ended."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.costs.attribution.forms import RuleForm
from fleet.costs.attribution.models import AttributionRule, Reattribution
from fleet.costs.attribution.rules import add_rule, change_rule, check_rule, end_rule, move_rule
from fleet.costs.attribution.shown import preview_lines, reattributions_shown
from fleet.costs.attribution.standing import board_of, preview_rule, unattributed
from fleet.formats import amounts_text
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

ENTRIES_SHOWN = 50


@require_safe
def rules(request: TeamRequest) -> HttpResponse:
    now = timezone.now()
    money, credit = unattributed(request.team, now=now)
    entries = Reattribution.objects.filter(team=request.team).order_by("-created_at")[:ENTRIES_SHOWN]
    context = {
        "nav": "costs",
        "tab": "rules",
        "board": board_of(request.team, now=now),
        "unattributed": amounts_text(money),
        "credit": amounts_text(credit),
        "entries": reattributions_shown(request.team, entries),
        "may_change": request.membership.can(Role.ADMIN),
    }
    return render(request, "costs/rules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def rule_new(request: TeamRequest) -> HttpResponse:
    """What is sent without `save` only asks what it would do."""
    form = RuleForm(request.POST or None, team=request.team)
    if form.is_valid() and "save" in request.POST and _saved(request, form, None):
        messages.success(request, _("The rule holds from this hour on."))
        return redirect("costs_rules", request.team.slug)
    return _draw(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def rule_change(request: TeamRequest, pk: int) -> HttpResponse:
    rule = get_object_or_404(AttributionRule, pk=pk, team=request.team, ended_at=None)
    form = RuleForm(request.POST or None, team=request.team, initial=RuleForm.initial_of(rule))
    if form.is_valid() and "save" in request.POST and _saved(request, form, rule):
        messages.success(request, _("The rule as it is now holds from this hour on; what was before stays."))
        return redirect("costs_rules", request.team.slug)
    return _draw(request, form, rule)


@require_POST
@requires(Role.ADMIN)
def rule_end(request: TeamRequest, pk: int) -> HttpResponse:
    rule = get_object_or_404(AttributionRule, pk=pk, team=request.team)
    if end_rule(actor=Actor.of_page(request), rule=rule, now=timezone.now()):
        messages.success(request, _("The rule is ended; what it decided stays."))
    return redirect("costs_rules", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def rule_move(request: TeamRequest, pk: int) -> HttpResponse:
    rule = get_object_or_404(AttributionRule, pk=pk, team=request.team)
    move_rule(actor=Actor.of_page(request), rule=rule, up="up" in request.POST, now=timezone.now())
    return redirect("costs_rules", request.team.slug)


def _saved(request: TeamRequest, form: RuleForm, rule: AttributionRule | None) -> bool:
    """False: it was refused, and the form says why."""
    asked: dict[str, Any] = {"actor": Actor.of_page(request), "said": form.said(), "now": timezone.now()}
    try:
        if rule is None:
            add_rule(team=request.team, **asked)
        elif change_rule(rule=rule, **asked) is None:
            form.add_error(None, _("Somebody ended this rule meanwhile. Make a new one."))
            return False
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True


def _draw(request: TeamRequest, form: RuleForm, rule: AttributionRule | None) -> HttpResponse:
    context = {
        "nav": "costs",
        "tab": "rules",
        "form": form,
        "rule": rule,
        "preview": _preview(request, form, rule) if form.is_bound and form.is_valid() else None,
    }
    return render(request, "costs/rule.html", context, status=422 if form.errors else 200)


def _preview(request: TeamRequest, form: RuleForm, rule: AttributionRule | None) -> dict[str, Any] | None:
    """None, and an error in the form: it cannot be."""
    try:
        check_rule(team=request.team, said=form.said())
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return None
    found = preview_rule(team=request.team, said=form.said(), now=timezone.now(), replaces=rule)
    return preview_lines(request.team, found)
