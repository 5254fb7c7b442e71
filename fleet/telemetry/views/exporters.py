"""A machine's exporters: adding, changing, removing, and reading one now."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.forms import KnownTargetForm, TargetForm
from fleet.telemetry.machine_panel import target_row
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape.targets import (
    TargetError,
    add_target,
    confirm_target_host,
    read_target_now,
    remove_target,
    update_target,
)
from fleet.telemetry.tasks import scrape_shard


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def exporter_add(request: TeamRequest, pk: int) -> HttpResponse:
    instance = get_object_or_404(Instance.objects.select_related("team"), pk=pk, team=request.team)
    form = TargetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            target = add_target(actor=Actor.of_page(request), instance=instance, **form.arguments())
        except TargetError as error:
            form.add_error(error.field, str(error.text))
        else:
            read_soon(request, target)
            messages.success(request, _("Added; it is read now."))
            return redirect("instance", request.team.slug, pk)
    return _draw(request, instance, form)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def exporter_edit(request: TeamRequest, target_id: int) -> HttpResponse:
    target = _target(request, target_id)
    form = KnownTargetForm(request.POST or None, target=target, initial=KnownTargetForm.initial_of(target))
    if request.method == "POST" and form.is_valid():
        try:
            update_target(actor=Actor.of_page(request), target=target, **form.arguments())
        except TargetError as error:
            form.add_error(error.field, str(error.text))
        else:
            messages.success(request, _("Saved."))
            return redirect("instance", request.team.slug, target.instance_id)
    return _draw(request, target.instance, form, **target_row(target))


@require_POST
@requires(Role.OPERATOR)
def exporter_read(request: TeamRequest, target_id: int) -> HttpResponse:
    target = _target(request, target_id)
    if read_soon(request, target):
        messages.success(request, _("It is read now; the result is here in a few seconds."))
    else:
        messages.info(request, _("It is not read, or has been read just now."))
    return redirect("instance", request.team.slug, target.instance_id)


@require_POST
@requires(Role.OPERATOR)
def exporter_remove(request: TeamRequest, target_id: int) -> HttpResponse:
    target = _target(request, target_id)
    if remove_target(actor=Actor.of_page(request), target=target):
        messages.success(request, _("Removed; what it gave stays."))
    return redirect("instance", request.team.slug, target.instance_id)


@require_POST
@requires(Role.OPERATOR)
def exporter_host_key(request: TeamRequest, target_id: int) -> HttpResponse:
    """Confirms the host key whose fingerprint the page showed."""
    target = _target(request, target_id)
    if confirm_target_host(actor=Actor.of_page(request), target=target, shown=request.POST.get("fingerprint", "")):
        read_soon(request, target)
        messages.success(request, _("Confirmed; it is read now."))
    else:
        messages.error(request, _("The machine has shown another key since. Look at it again."))
    return redirect("exporter_edit", request.team.slug, target.pk)


def read_soon(request: TeamRequest, target: ScrapeTarget) -> bool:
    claim = read_target_now(actor=Actor.of_page(request), target=target)
    if claim:
        scrape_shard.delay(str(claim))
    return claim is not None


def _target(request: TeamRequest, target_id: int) -> ScrapeTarget:
    mine = ScrapeTarget.objects.filter(instance__team=request.team).select_related("instance__team")
    return get_object_or_404(mine, pk=target_id)


def _draw(request: TeamRequest, instance: Instance, form: TargetForm, **more: Any) -> HttpResponse:
    context = {"nav": "instances", "instance": instance, "form": form, **more}
    return render(request, "telemetry/exporter.html", context, status=422 if form.errors else 200)
