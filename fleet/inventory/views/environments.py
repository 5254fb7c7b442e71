"""One environment: what lies on an image or a template, where it runs, and its runbook to read, edit and take along."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.inventory.environments.forms import EnvironmentForm
from fleet.inventory.environments.listing import launch_url
from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.places import asked_place, place_context
from fleet.inventory.environments.runbook import EXPORTS, runbook_of
from fleet.inventory.environments.sources import environment_of
from fleet.inventory.environments.verdicts import judge
from fleet.inventory.environments.writing import (
    EnvironmentRefused,
    create_template,
    edit_environment,
    image_of_team,
    remove_environment,
)
from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.audit_words import line_of
from fleet.teams.models import AuditEntry, Role

# Edits that a page tells of; the rest is in the audit log.
SHOWN_EDITS = 8


@require_safe
def environment(request: TeamRequest, pk: int, *, of_image: bool) -> HttpResponse:
    row = subject(request, pk, of_image=of_image)
    runbook, place = runbook_of(row), asked_place(request)
    context = {
        **common(row),
        "runbook": runbook,
        "verdict": judge(runbook.versions, place) if place else None,
        "users": Instance.objects.filter(image=row.image, gone_at=None).order_by("name") if row.image else (),
        "edits": edits_of(row),
        "exports": [{"name": name, "file": export.file_name} for name, export in EXPORTS.items()],
        "launch_url": launch_url(row.image) if row.image else None,
        "may_change": request.membership.can(Role.OPERATOR),
        **place_context(request, place),
    }
    return render(request, "inventory/environments/one.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def environment_edit(request: TeamRequest, pk: int, *, of_image: bool) -> HttpResponse:
    row = subject(request, pk, of_image=of_image)
    form = EnvironmentForm(request.POST or None, initial=EnvironmentForm.initial_of(row), of_image=of_image)
    if request.method == "POST" and form.is_valid() and edited(request, row, form):
        messages.success(request, _("Saved."))
        return redirect(address(row, "environment"), request.team.slug, pk)
    return render(request, "inventory/environments/edit.html", {**common(row), "form": form}, status=status_of(form))


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def environment_add(request: TeamRequest) -> HttpResponse:
    row = Environment(team=request.team)
    form = EnvironmentForm(request.POST or None, initial={"currency": request.team.currency}, of_image=False)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_template(
                actor=Actor.of_page(request), team=request.team, values=form.values(), now=timezone.now()
            )
        except EnvironmentRefused as refusal:
            form.add_error(refusal.field, str(refusal))
        else:
            messages.success(request, _("Saved."))
            return redirect("environment", request.team.slug, made.pk)
    return render(request, "inventory/environments/edit.html", {**common(row), "form": form}, status=status_of(form))


@require_POST
@requires(Role.OPERATOR)
def environment_remove(request: TeamRequest, pk: int, *, of_image: bool) -> HttpResponse:
    row = subject(request, pk, of_image=of_image)
    if row.pk:
        remove_environment(actor=Actor.of_page(request), environment=row)
    messages.success(request, _("Removed. Its wording stays in the audit log."))
    return redirect("image", request.team.slug, pk) if of_image else redirect("images", request.team.slug)


@require_safe
def environment_export(request: TeamRequest, pk: int, *, of_image: bool) -> HttpResponse:
    row = subject(request, pk, of_image=of_image)
    export = EXPORTS.get(request.GET.get("as", "markdown"))
    if export is None:
        raise Http404
    answer = HttpResponse(export.write(runbook_of(row)), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    return answer


def subject(request: TeamRequest, pk: int, *, of_image: bool) -> Environment:
    """The row of a template, or of an image, which need not be saved yet."""
    if not of_image:
        rows = Environment.objects.filter(team=request.team, image=None).select_related("team", "typed_by", "edited_by")
        return get_object_or_404(rows, pk=pk)
    image = image_of_team(request.team, pk)
    if image is None:
        raise Http404
    row = environment_of(image)
    row.image, row.team = image, request.team
    return row


def common(row: Environment) -> dict[str, Any]:
    """The addresses of what can be done with it."""
    names = ("environment", "environment_edit", "environment_export", "environment_remove")
    urls = {name.removeprefix("environment_") or name: address(row, name) for name in names}
    key = row.image_id or row.pk
    return {"nav": "images", "row": row, "image": row.image, "key": key, "urls": urls}


def address(row: Environment, name: str) -> str:
    return name.replace("environment", "image", 1) if row.image_id else name


def edited(request: TeamRequest, row: Environment, form: EnvironmentForm) -> bool:
    """False: refused, and the form says why. What was typed stays in it."""
    try:
        edit_environment(
            actor=Actor.of_page(request),
            environment=row,
            values=form.values(),
            now=timezone.now(),
            seen=form.seen_at(),
        )
    except EnvironmentRefused as refusal:
        form.add_error(refusal.field, str(refusal))
        return False
    return True


def status_of(form: EnvironmentForm) -> int:
    return 422 if form.errors else 200


def edits_of(row: Environment) -> list[Any]:
    if not row.pk:
        return []
    entries = AuditEntry.objects.filter(team=row.team_id, target_type="Environment", target_id=str(row.pk))
    return [line_of(entry) for entry in entries.order_by("-at", "-pk")[:SHOWN_EDITS]]
