"""The end of one machine's log, or the lines in which words stand."""

from __future__ import annotations

from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.logs.read import LogLine, find_lines, last_lines, line_count
from jobs.pages.panels.panel import JobPanel

TAIL = 200


def log_of(request: TeamRequest, attempt: Attempt) -> dict[str, Any]:
    rank, words = request.GET.get("rank", ""), request.GET.get("q", "").strip()[:200]
    nodes = attempt.nodes.order_by("rank")
    node = (nodes.filter(rank=int(rank)).first() if rank.isdecimal() and len(rank) < 5 else None) or nodes[0]
    lines: list[LogLine]
    lines, more = find_lines(node, words, most=TAIL) if words else (last_lines(node, TAIL), False)
    return {
        "node": node,
        "lines": lines,
        "more": more,
        "words": words,
        "count": line_count(node),
        "several": nodes.count() > 1,
        "ranks": range(nodes.count()),
    }


def context(request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any]:
    return log_of(request, attempt)


PANEL = JobPanel("log", "jobs/panels/log.html", context, place="foot")
