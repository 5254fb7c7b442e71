"""What the run told and what its machines measured, on one axis of time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.pages.charts.figure import SPANS, WHOLE, began_of, figure_of
from jobs.pages.panels.panel import JobPanel
from jobs.pages.series import other_in, span_in

SPAN_WORDS = {"1h": _("1 h"), "3h": _("3 h"), "12h": _("12 h"), WHOLE: _("Run")}


def context(request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any] | None:
    """None before it has begun: there is no axis yet. A run shorter than a span has no use for it."""
    if attempt.started_at is None:
        return None
    now, span, other = timezone.now(), span_in(request), other_in(request, job)
    lasted = (attempt.ended_at or now) - began_of(attempt)
    figure = figure_of(job, attempt, span=span, now=now, other=other)
    heads, lines = figure.table
    query = {"attempt": attempt.number} | ({"with": other.job_id} if other else {})
    return {
        "figure": figure,
        "json": figure.as_json(),
        "heads": heads,
        "lines": lines,
        "span": span,
        "spans": [(name, SPAN_WORDS[name]) for name in SPANS if SPANS[name] < lasted] + [(WHOLE, SPAN_WORDS[WHOLE])],
        "query": urlencode(query),
        "other": other.job if other else None,
    }


PANEL = JobPanel("charts", "jobs/panels/charts.html", context, keeps=True)
