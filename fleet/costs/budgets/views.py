"""Costs, Budgets: what is spent of each and where it is heading, what is blocked and planned by them, and what was reached."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.alerts.planned_acts import call_off
from fleet.costs.budgets.forms import BudgetForm
from fleet.costs.budgets.manage import add_budget, remove_budget, update_budget
from fleet.costs.budgets.models import Budget, Crossing
from fleet.costs.budgets.shown import RELATED, budgets_of, footer, headline, judged_at, lines_of, scale_of
from fleet.inventory.plans.actions import ended_words
from fleet.inventory.plans.blocks import lift_block
from fleet.inventory.plans.gate import blocks_for_page, remedy_words
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.inventory.plans.reasons import reason_text
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.fields import one_line
from fleet.teams.models import Role

CROSSINGS_SHOWN = 50
PLANS_SHOWN = 200
REASON_LENGTH = 300


@require_safe
def budgets(request: TeamRequest) -> HttpResponse:
    now = timezone.now()
    lines = budgets_of(request.team, now)
    context = {
        "nav": "costs",
        "tab": "costs_budgets",
        "lines": lines,
        "headline": headline(lines),
        "scale": scale_of(lines),
        "footer": footer(lines),
        "judged_at": judged_at(lines),
        "blocks": blocks_for_page(request.team.pk),
        "remedy": remedy_words(),
        "plans": plans_of(request),
        "crossings": crossings_of(request),
        "may_change": request.membership.can(Role.ADMIN),
    }
    return render(request, "costs/budgets/list.html", context)


def plans_of(request: TeamRequest) -> list[Context]:
    """What stands, and after it what was called off lately."""
    rows = PlannedAction.objects.filter(team=request.team, source__startswith="budget:")
    rows = rows.select_related("instance__owner", "ended_by").order_by("-created_at", "-pk")[:PLANS_SHOWN]
    found = [
        {
            "action": row,
            "stands": row.is_standing,
            "reason": reason_text(row),
            "ended": ended_words(row),
        }
        for row in rows
    ]
    return sorted(found, key=lambda one: not one["stands"])


def crossings_of(request: TeamRequest) -> list[Crossing]:
    rows = Crossing.objects.filter(budget__team=request.team).select_related("budget")
    return list(rows.order_by("-at", "-pk")[:CROSSINGS_SHOWN])


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def budget_add(request: TeamRequest) -> HttpResponse:
    form = BudgetForm(request.POST or None, team=request.team, initial=BudgetForm.initial_of(request.team))
    if request.method == "POST" and form.is_valid() and _saved(request, form, None):
        return redirect("costs_budgets", request.team.slug)
    return _form_page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def budget_edit(request: TeamRequest, pk: int) -> HttpResponse:
    budget = _budget_or_404(request, pk)
    form = BudgetForm(request.POST or None, team=request.team, initial=BudgetForm.initial_of(request.team, budget))
    if request.method == "POST" and form.is_valid() and _saved(request, form, budget):
        return redirect("costs_budgets", request.team.slug)
    return _form_page(request, form, budget)


@require_POST
@requires(Role.ADMIN)
def budget_remove(request: TeamRequest, pk: int) -> HttpResponse:
    if remove_budget(actor=Actor.of_page(request), budget=_budget_or_404(request, pk), now=timezone.now()):
        messages.success(request, _("Removed. What it blocked may be launched again; what it planned is called off."))
    return redirect("costs_budgets", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def plan_cancel(request: TeamRequest, pk: int) -> HttpResponse:
    action = get_object_or_404(PlannedAction.objects.select_related("team", "instance"), pk=pk, team=request.team)
    reason = _reason(request)
    if reason and call_off(actor=Actor.of_page(request), actions=[action], why=reason, now=timezone.now()):
        messages.success(request, _("Called off. Its budget does not plan it again in this period."))
    elif reason:
        messages.info(request, _("Nothing changed: it had ended already."))
    return redirect("costs_budgets", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def block_lift(request: TeamRequest, pk: int) -> HttpResponse:
    block = get_object_or_404(LaunchBlock.objects.select_related("team"), pk=pk, team=request.team)
    reason = _reason(request)
    if reason and lift_block(actor=Actor.of_page(request), block=block, reason=reason, now=timezone.now()):
        messages.success(request, _("Lifted until the next period of its budget, or until the budget is changed."))
    elif reason:
        messages.info(request, _("Nothing changed: it was lifted already."))
    return redirect("costs_budgets", request.team.slug)


def _reason(request: TeamRequest) -> str:
    """Empty, with a message, where none was given."""
    reason = one_line(request.POST.get("reason", ""))[:REASON_LENGTH]
    if not reason:
        messages.error(request, _("Give a reason: it is kept and shown. Nothing was changed."))
    return reason


def _budget_or_404(request: TeamRequest, pk: int) -> Budget:
    rows = Budget.objects.select_related(*RELATED).filter(removed_at=None)
    return get_object_or_404(rows, pk=pk, team=request.team)


def _saved(request: TeamRequest, form: BudgetForm, budget: Budget | None) -> bool:
    actor, now = Actor.of_page(request), timezone.now()
    try:
        if budget is None:
            add_budget(actor=actor, team=request.team, words=form.words(), now=now)
        else:
            update_budget(actor=actor, budget=budget, words=form.words(), now=now)
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    messages.success(request, _("Saved, and judged by what is spent so far."))
    return True


def _form_page(request: TeamRequest, form: BudgetForm, budget: Budget | None) -> HttpResponse:
    context = {
        "nav": "costs",
        "tab": "costs_budgets",
        "form": form,
        "budget": budget,
        "line": lines_of([budget], timezone.now())[0] if budget else None,
        "crossings": budget.crossings.order_by("-at", "-pk")[:CROSSINGS_SHOWN] if budget else [],
        "zone": request.team.time_zone,
    }
    return render(request, "costs/budgets/edit.html", context, status=422 if form.errors else 200)
