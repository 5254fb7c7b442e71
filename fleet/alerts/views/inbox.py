from __future__ import annotations

import json
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet import panels
from fleet.alerts.escalation import reachable_members
from fleet.alerts.inbox import GROUPINGS, Wanted, Which, closed_lately, load_inbox
from fleet.alerts.models import Severity, Signal
from fleet.alerts.snoozes import SNOOZES
from fleet.alerts.tally import Tally, severity_counts, tally_of
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role


@require_safe
def alerts(request: TeamRequest) -> HttpResponse:
    """What is wrong now, worst first; a script's request gets the parts that move."""
    return draw_inbox(request, Wanted.of(request.GET), now=timezone.now())


def draw_inbox(request: TeamRequest, wanted: Wanted, *, now: datetime, say: str = "") -> HttpResponse:
    context = {"nav": "alerts", "wanted": wanted, **_list(request, wanted, now)}
    if not request.htmx:
        return render(request, "alerts/inbox.html", context | {"panels": panels.inbox_panels})
    answer = render(request, "alerts/inbox_pulse.html", context)
    if say:
        # For the page's script, which says it where a reader of the screen hears it.
        answer.headers["HX-Trigger"] = json.dumps({"say": say})
    return answer


def _list(request: TeamRequest, wanted: Wanted, now: datetime) -> Context:
    tally = tally_of(request)
    inbox = load_inbox(team=request.team, wanted=wanted, now=now, reader=request.user)
    closed = closed_lately(request.team, now)
    rows = tally.snoozed if wanted.which is Which.SNOOZED else tally.awake
    counts = severity_counts(rows) if wanted.which is not Which.CLOSED else [(each, None) for each in Severity]
    return {
        "inbox": inbox,
        "tally": tally,
        "folded": _folded(tally),
        "tabs": [(Which.OPEN, len(tally.awake)), (Which.SNOOZED, len(tally.snoozed)), (Which.CLOSED, closed.count())],
        "chips": counts,
        "groupings": [(name, grouping.label) for name, grouping in GROUPINGS.items()],
        **acting(request),
    }


def acting(request: TeamRequest) -> Context:
    """What the buttons of an alert need."""
    may_act = request.membership.can(Role.OPERATOR)
    return {
        "may_act": may_act,
        "snoozes": list(SNOOZES.items()),
        "colleagues": list(reachable_members(request.team)) if may_act else [],
    }


def _folded(tally: Tally) -> int:
    return Signal.objects.filter(alert__in=[row.id for row in tally.awake], cleared_at=None).count()
