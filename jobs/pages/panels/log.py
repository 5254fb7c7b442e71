"""The end of one machine's log, or the lines in which words stand. The page's script appends what is written."""

from __future__ import annotations

from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.logs.read import line_count
from jobs.logs.window import lines_before
from jobs.pages.attempts import number_in
from jobs.pages.panels.panel import JobPanel
from jobs.pages.tail import TAIL, ShownLine, node_of, wanted_of


def context(request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any]:
    node, wanted = node_of(attempt, number_in(request.GET, "rank")), wanted_of(request.GET)
    found = lines_before(node, wanted, most=TAIL)
    count = line_count(node)
    return {
        "node": node,
        "nodes": list(attempt.nodes.select_related("instance").order_by("rank")),
        "lines": [ShownLine.of(line) for line in found.lines],
        "first": found.reached,
        "more": found.more,
        "wanted": wanted,
        "count": count,
    }


PANEL = JobPanel("log", "jobs/panels/log.html", context, place="foot", keeps=True)
