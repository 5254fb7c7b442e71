"""Costs → Charges: what no listing shows, as people typed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.costs.charges.charges import add_charge, end_charge, remove_charge
from fleet.costs.charges.forms import ChargeForm, EndForm, RemoveForm
from fleet.costs.charges.models import TypedCharge
from fleet.teams.access import TeamRequest
from fleet.teams.audit import Actor
from fleet.teams.models import Role

SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
def charges(request: TeamRequest) -> HttpResponse:
    """Everybody of the team sees them; who operates types them."""
    month_start = timezone.localtime().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    first = {"currency": request.team.currency, "starts_at": month_start}
    form = ChargeForm(request.POST or None, team=request.team, initial=first)
    if request.method == "POST" and form.is_valid() and added(request, form):
        messages.success(request, _("Added. Totals have it within minutes."))
        return redirect("costs_charges", request.team.slug)
    return draw(request, form, status=422 if form.errors else 200)


@require_POST
def charge_end(request: TeamRequest, pk: int) -> HttpResponse:
    charge, form = charge_of(request, pk), EndForm(request.POST)
    if form.is_valid():
        try:
            told = end_charge(
                actor=Actor.of_page(request),
                charge=charge,
                ends_at=form.cleaned_data["ends_at"],
                now=timezone.now(),
            )
        except ValidationError as refusal:
            form.add_error(None, refusal)
        else:
            return answered(request, told=told, words=_("Ended."))
    return refused(request, form)


@require_POST
def charge_remove(request: TeamRequest, pk: int) -> HttpResponse:
    charge, form = charge_of(request, pk), RemoveForm(request.POST)
    if not form.is_valid():
        return refused(request, form)
    told = remove_charge(
        actor=Actor.of_page(request), charge=charge, reason=form.cleaned_data["reason"], now=timezone.now()
    )
    return answered(request, told=told, words=_("Removed. It counts for no day any more, and stays on record."))


def added(request: TeamRequest, form: ChargeForm) -> bool:
    try:
        add_charge(actor=Actor.of_page(request), team=request.team, now=timezone.now(), **form.asked())
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True


def charge_of(request: TeamRequest, pk: int) -> TypedCharge:
    rows = TypedCharge.objects.select_related("team", "account", "instance")
    return get_object_or_404(rows, pk=pk, team=request.team)


def answered(request: TeamRequest, *, told: bool, words: str) -> HttpResponse:
    if told:
        messages.success(request, words)
    else:
        messages.info(request, _("Nothing changed: it had ended or was removed already."))
    return redirect("costs_charges", request.team.slug)


def refused(request: TeamRequest, form: forms.Form) -> HttpResponse:
    for texts in form.errors.values():
        messages.error(request, str(texts[0]))
    return draw(request, ChargeForm(team=request.team, initial={"currency": request.team.currency}), status=422)


@dataclass(frozen=True, slots=True)
class Line:
    """A charge with what may be done to it. `end`: None where it has one already."""

    charge: TypedCharge
    is_past: bool
    end: EndForm | None
    remove: RemoveForm


def line_of(charge: TypedCharge, *, now: datetime) -> Line:
    over = charge.ends_at is not None and charge.ends_at <= now
    end = EndForm(auto_id=f"end-{charge.pk}-%s", initial={"ends_at": now}) if charge.ends_at is None else None
    return Line(charge, charge.removed_at is not None or over, end, RemoveForm(auto_id=f"remove-{charge.pk}-%s"))


def draw(request: TeamRequest, form: ChargeForm, *, status: int = 200) -> HttpResponse:
    now = timezone.now()
    mine = TypedCharge.objects.filter(team=request.team).select_related(
        "account", "instance", "created_by", "removed_by"
    )
    lines = [line_of(row, now=now) for row in mine.order_by("-starts_at", "-pk")[:SHOWN]]
    context: dict[str, Any] = {
        "nav": "costs",
        "tab": "costs_charges",
        "form": form,
        "zone": timezone.get_current_timezone_name(),
        "may_act": request.membership.can(Role.OPERATOR),
        "running": [line for line in lines if not line.is_past],
        "past": [line for line in lines if line.is_past],
    }
    return render(request, "costs/charges.html", context, status=status)
