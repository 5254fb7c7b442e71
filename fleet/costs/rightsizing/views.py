"""Costs, Right-sizing: every suggestion, what was put away and why, and why the other machines are left alone."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.costs.rightsizing.look import dismiss_suggestion
from fleet.costs.rightsizing.shown import left_alone, lines_of, open_rows, rows_of, total_of
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.fields import one_line
from fleet.teams.models import Role

SHOWN = 200
REASON_LENGTH = 300


@require_safe
def right_sizing(request: TeamRequest) -> HttpResponse:
    rows = rows_of(request.team)
    total = total_of(request.team)
    lines = lines_of(open_rows(request.team)[:SHOWN])
    put_away = rows.filter(dismissed_at__isnull=False).exclude(kind="").order_by("-dismissed_at")
    context = {
        "nav": "costs",
        "tab": "right_sizing",
        "total": total,
        "lines": lines,
        "others": total.count - len(lines),
        "put_away": lines_of(put_away[:SHOWN]),
        "alone": left_alone(request.team, SHOWN),
        "may_change": request.membership.can(Role.OPERATOR),
    }
    return render(request, "costs/rightsizing/page.html", context)


@require_POST
@requires(Role.OPERATOR)
def dismiss(request: TeamRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(rows_of(request.team).select_related("team"), pk=pk)
    reason = one_line(request.POST.get("reason", ""))[:REASON_LENGTH]
    if not reason:
        messages.error(request, _("Give a reason: it is kept and shown. Nothing was changed."))
    elif dismiss_suggestion(actor=Actor.of_page(request), row=row, reason=reason, now=timezone.now()):
        messages.success(request, _("Put away. It comes back if it would save half as much again."))
    else:
        messages.info(request, _("Nothing changed: it was put away already, or is a suggestion no more."))
    return redirect("right_sizing", request.team.slug)
