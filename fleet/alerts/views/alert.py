from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet.alerts.history import history_of
from fleet.alerts.lines import RELATED, load_lines
from fleet.alerts.models import Alert
from fleet.alerts.views.inbox import acting
from fleet.teams.access import TeamRequest
from fleet.teams.audit_words import line_of
from fleet.teams.models import AuditEntry

AUDIT_SHOWN = 50


@require_safe
def alert(request: TeamRequest, pk: int) -> HttpResponse:
    """One alert: what is, the evidence, what to do, its course, and who did what."""
    found = get_object_or_404(Alert.objects.filter(team=request.team).select_related(*RELATED), pk=pk)
    entries = AuditEntry.objects.filter(team=request.team, target_type="Alert", target_id=str(pk)).order_by("-pk")
    context = {
        "nav": "alerts",
        "line": load_lines([found], now=timezone.now(), reader=request.user)[0],
        "history": history_of(found),
        "audit": [line_of(entry) for entry in entries.select_related("actor")[:AUDIT_SHOWN]],
        **acting(request),
    }
    return render(request, "alerts/alert.html", context)
