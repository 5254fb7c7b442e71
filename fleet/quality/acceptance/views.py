"""A machine's acceptance tests: every figure, the evidence as text, and asking for another one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.inventory.models import Instance
from fleet.quality.acceptance.asking import ask_acceptance
from fleet.quality.acceptance.evidence import evidence_text
from fleet.quality.acceptance.shown import asking_state, lines_of, shortfalls, unmeasured
from fleet.quality.models import AcceptanceReport
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.actions.ask import ActionError

SHOWN_REPORTS = 20


@require_safe
def acceptance(request: TeamRequest, pk: int) -> HttpResponse:
    instance = get_object_or_404(Instance, pk=pk, team=request.team)
    reports = AcceptanceReport.objects.filter(instance=instance).select_related("instance").order_by("-at", "-pk")
    report = _chosen(request, list(reports[:SHOWN_REPORTS]))
    context = {
        "nav": "instances",
        "instance": instance,
        "report": report,
        "reports": reports[:SHOWN_REPORTS],
        "lines": lines_of(report) if report else [],
        "short": shortfalls(report) if report else [],
        "unmeasured": unmeasured(report) if report else [],
        "evidence": evidence_text(report) if report else "",
        **asking_state(request, instance),
    }
    return render(request, "quality/acceptance.html", context)


def _chosen(request: TeamRequest, reports: list[AcceptanceReport]) -> AcceptanceReport | None:
    """The one that the address names, else the newest."""
    named = request.GET.get("report")
    if named is None:
        return reports[0] if reports else None
    found = next((report for report in reports if str(report.pk) == named), None)
    if found is None:
        raise Http404
    return found


@require_POST
@requires(Role.OPERATOR)
def ask(request: TeamRequest, pk: int) -> HttpResponse:
    instance = get_object_or_404(Instance, pk=pk, team=request.team)
    try:
        ask_acceptance(
            actor=Actor.of_page(request), instance=instance, when_busy="when_busy" in request.POST, now=timezone.now()
        )
    except ActionError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Asked for. It begins with the agent's next word and takes up to two minutes."))
    return redirect("acceptance", request.team.slug, pk)
