"""Costs, Balances: how long prepaid money lasts, what was paid in, and when somebody is told."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.costs.balances.forms import LimitsForm, TypedBalanceForm
from fleet.costs.balances.judging import judge_team
from fleet.costs.balances.keeping import set_limits, type_balance
from fleet.costs.balances.lines import Drawn
from fleet.costs.balances.models import TopUp
from fleet.costs.balances.shown import runways_of
from fleet.teams.access import TeamRequest
from fleet.teams.audit import Actor
from fleet.teams.models import Role

TOP_UPS_SHOWN = 50


@require_safe
def balances(request: TeamRequest) -> HttpResponse:
    return _page(request)


@require_POST
def balance_type(request: TeamRequest) -> HttpResponse:
    form, now = TypedBalanceForm(request.POST, team=request.team, auto_id="typed_%s"), timezone.now()
    if form.is_valid():
        try:
            type_balance(actor=Actor.of_page(request), now=now, **form.cleaned_data)
        except ValidationError as refusal:
            form.add_error(None, refusal)
    if form.errors:
        return _page(request, typed=form)
    judge_team(team=request.team, now=now)
    messages.success(request, _("Noted. It is counted down by the ledger from that time on."))
    return redirect("costs_balances", request.team.slug)


@require_POST
def balance_limits(request: TeamRequest) -> HttpResponse:
    form, now = LimitsForm(request.POST, team=request.team, auto_id="limits_%s"), timezone.now()
    if form.is_valid():
        try:
            set_limits(actor=Actor.of_page(request), team=request.team, now=now, **form.cleaned_data)
        except ValidationError as refusal:
            form.add_error(None, refusal)
    if form.errors:
        return _page(request, limits=form)
    judge_team(team=request.team, now=now)
    messages.success(request, _("Saved."))
    return redirect("costs_balances", request.team.slug)


def _page(request: TeamRequest, *, typed: Any = None, limits: Any = None) -> HttpResponse:
    now, team = timezone.now(), request.team
    initial = {"currency": team.currency, "at": timezone.localtime(now).replace(second=0, microsecond=0)}
    context = {
        "nav": "costs",
        "tab": "costs_balances",
        "drawn": Drawn.of(runways_of(team, now)),
        "top_ups": TopUp.objects.filter(account__team=team)
        .select_related("account")
        .order_by("-at", "-pk")[:TOP_UPS_SHOWN],
        "typed": typed or TypedBalanceForm(team=team, initial=initial, auto_id="typed_%s"),
        "limits": limits or LimitsForm(team=team, auto_id="limits_%s"),
        "may_change": request.membership.can(Role.OPERATOR),
    }
    return render(request, "costs/balances/list.html", context, status=422 if typed or limits else 200)
