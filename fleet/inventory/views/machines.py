"""Machines typed by hand, what people say of any machine, and holds."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.inventory.machine_forms import HoldForm, ListedMachineForm, TypedMachineForm, gpu_names
from fleet.inventory.machines import add_machine, is_typed, place_hold, release_hold, update_machine
from fleet.inventory.models import Hold, Instance
from fleet.providers.base import Tenancy
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def machine_add(request: TeamRequest) -> HttpResponse:
    initial = {"currency": request.team.currency, "owner": request.user.pk, "tenancy": Tenancy.UNKNOWN}
    form = TypedMachineForm(request.POST or None, team=request.team, initial=initial)
    # A machine that is given back already is nothing to add.
    del form.fields["state"].choices[2:]  # type: ignore[attr-defined]
    if request.method == "POST" and form.is_valid():
        machine = add_machine(
            actor=Actor.of_page(request),
            team=request.team,
            typed=form.typed(),
            expires_at=form.cleaned_data["expires_at"],
            **form.people(),
        )
        messages.success(request, _("%(name)s is in the fleet.") % {"name": machine.name})
        return redirect("instance", request.team.slug, machine.pk)
    context = {"nav": "instances", "form": form, "gpu_names": gpu_names()}
    return render(request, "inventory/machine_add.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def machine_edit(request: TeamRequest, pk: int) -> HttpResponse:
    instance = machine_of(request, pk)
    kind = TypedMachineForm if is_typed(instance) else ListedMachineForm
    form = kind(request.POST or None, team=request.team, initial=kind.initial_of(instance))
    if request.method == "POST" and form.is_valid():
        update_machine(actor=Actor.of_page(request), instance=instance, **form.people(), **particulars(form))
        messages.success(request, _("Saved."))
        return redirect("instance", request.team.slug, pk)
    context = {"nav": "instances", "form": form, "instance": instance, "gpu_names": gpu_names()}
    return render(request, "inventory/machine_edit.html", context, status=422 if form.errors else 200)


def particulars(form: TypedMachineForm | ListedMachineForm) -> dict[str, Any]:
    """What the two kinds of machines differ in, for update_machine. A typed machine is always registered."""
    if isinstance(form, TypedMachineForm):
        return {"managed": True, "typed": form.typed(), "expires_at": form.cleaned_data["expires_at"]}
    return {"managed": form.cleaned_data["managed"], "ssh_typed": form.cleaned_data["ssh_typed"]}


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def hold_place(request: TeamRequest, pk: int) -> HttpResponse:
    instance = machine_of(request, pk)
    form = HoldForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        place_hold(
            actor=Actor.of_page(request),
            instance=instance,
            owner=request.user,
            until=form.cleaned_data["until"],
            reason=form.cleaned_data["reason"],
        )
        messages.success(request, _("%(name)s is held.") % {"name": instance.name})
        return redirect("instance", request.team.slug, pk)
    context = {"nav": "instances", "form": form, "instance": instance}
    return render(request, "inventory/hold.html", context, status=422 if form.errors else 200)


@require_POST
@requires(Role.OPERATOR)
def hold_release(request: TeamRequest, pk: int) -> HttpResponse:
    hold = get_object_or_404(Hold.objects.select_related("instance__team"), pk=pk, instance__team=request.team)
    if release_hold(actor=Actor.of_page(request), hold=hold):
        messages.success(request, _("The hold is released."))
    return redirect("instance", request.team.slug, hold.instance_id)


def machine_of(request: TeamRequest, pk: int) -> Instance:
    return get_object_or_404(Instance.objects.select_related("account", "team"), pk=pk, team=request.team)
