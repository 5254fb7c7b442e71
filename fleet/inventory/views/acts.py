"""Acts on one machine: what each will cost and lose, the question before it, and how far it is. No view waits for a provider."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from fleet.inventory.act_forms import ActForm
from fleet.inventory.models import Instance
from fleet.inventory.operations.bulk import REQUESTS, request_act
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.preview import Preview, Situation, preview
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.views.machines import machine_of
from fleet.providers.errors import Invalid
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def instance_act(request: TeamRequest, pk: int, kind: str) -> HttpResponse:
    """The question, and with POST the act. A script's request gets the question alone, for a dialog."""
    machine = machine_of(request, pk)
    told = preview_or_404(machine, kind)
    may_override = request.membership.can(Role.ADMIN)
    form = ActForm(request.POST if request.method == "POST" else None, preview=told, may_override=may_override)
    if form.is_valid() and begun(request, form, told):
        return redirect("instance", request.team.slug, pk)
    context = {
        "nav": "instances",
        "instance": machine,
        "preview": told,
        "form": form,
        "blocked": told.refusal or (told.held if not may_override else ""),
    }
    template = "inventory/operations/dialog.html" if request.htmx else "inventory/operations/act.html"
    return render(request, template, context, status=422 if form.errors else 200)


def begun(request: TeamRequest, form: ActForm, told: Preview) -> bool:
    """False: it was refused, and the form says why."""
    try:
        request_act(actor=Actor.of_page(request), instance=told.instance, kind=told.kind, **form.arguments())
    except Refused as refusal:
        form.add_refusal(refusal)
        return False
    return True


def preview_or_404(machine: Instance, kind: str) -> Preview:
    if kind not in REQUESTS:
        raise Http404
    try:
        return preview(machine, OperationKind(kind), Situation.of([machine], now=timezone.now()))
    except Invalid:
        raise Http404 from None
