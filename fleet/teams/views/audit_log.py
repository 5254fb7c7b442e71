from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit_log import csv_lines, find_entries
from fleet.teams.audit_words import line_of
from fleet.teams.forms import AuditFilterForm
from fleet.teams.models import AuditEntry, Role

PAGE_SIZE = 50
# About 30 MB of text, held in memory while it is sent.
MAX_CSV_ROWS = 100_000


@require_safe
@requires(Role.ADMIN)
def audit_log(request: TeamRequest) -> HttpResponse:
    form = AuditFilterForm(request.GET)
    valid = form.is_valid()
    entries = find_entries(team=request.team, **form.cleaned_data) if valid else AuditEntry.objects.none()
    chosen = {name: value for name, value in form.cleaned_data.items() if value}
    page = Paginator(entries, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav": "settings",
        "tab": "audit",
        "form": form,
        "page": page,
        "lines": [line_of(entry) for entry in page],
        "chosen": urlencode(chosen),
    }
    return render(request, "settings/audit.html", context, status=200 if valid else 422)


@require_safe
@requires(Role.ADMIN)
def audit_csv(request: TeamRequest) -> HttpResponse:
    form = AuditFilterForm(request.GET)
    if not form.is_valid():
        return audit_log(request)
    entries = find_entries(team=request.team, **form.cleaned_data)
    if entries[MAX_CSV_ROWS:].exists():
        messages.error(request, _("More than 100,000 entries match. Choose fewer days, and download part by part."))
        return redirect(f"{reverse('audit_log', args=[request.team.slug])}?{request.GET.urlencode()}")
    name = f"audit-{request.team.slug}-{timezone.localdate():%Y-%m-%d}.csv"
    return HttpResponse(
        "".join(csv_lines(entries)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
