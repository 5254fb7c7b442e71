"""The lines of a log that a page shows, and those that it asks for afterwards: newer ones, older ones, around a number, by words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import JsonResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from fleet.formats import bytes_text
from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, Node
from jobs.logs.read import LogLine, line_count
from jobs.logs.screen import on_screen
from jobs.logs.severity import warns
from jobs.logs.window import Found, Wanted, lines_after, lines_before
from jobs.pages.attempts import attempt_of, number_in

TAIL = 200
LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class ShownLine:
    """`gap`: says what is missing before it, "" = nothing."""

    number: int
    text: str
    warns: bool
    gap: str

    @classmethod
    def of(cls, line: LogLine) -> ShownLine:
        gap = _("%(size)s left out") % {"size": bytes_text(line.left_out)} if line.left_out else ""
        return cls(line.number, on_screen(line.text), warns(line.text), gap)


def wanted_of(query: QueryDict) -> Wanted:
    return Wanted(query.get("q", "").strip()[:LONGEST_WORDS], query.get("warnings") == "1")


def node_of(attempt: Attempt, rank: int | None) -> Node:
    """The machine of that rank, else the first."""
    nodes = attempt.nodes.select_related("instance").order_by("rank")
    return (nodes.filter(rank=rank).first() if rank is not None else None) or nodes[0]


def found_of(node: Node, query: QueryDict) -> Found:
    """`after`: what came behind that line; `before`: what lies before it; neither: the end."""
    wanted, after = wanted_of(query), number_in(query, "after")
    if after is not None:
        return lines_after(node, wanted, after=after)
    return lines_before(node, wanted, before=number_in(query, "before"), most=TAIL)


@require_safe
def job_lines(request: TeamRequest, pk: int, rank: int) -> JsonResponse:
    """With `peek`, only how many lines there are."""
    found = get_object_or_404(Job, pk=pk, team=request.team)
    attempt = attempt_of(found, request.GET.get("attempt", ""))
    node = get_object_or_404(Node, attempt=attempt, rank=rank)
    ends = not found.is_open
    answer: dict[str, Any] = {"count": line_count(node), "ends": ends}
    if "peek" not in request.GET:
        answer |= as_json(found_of(node, request.GET))
    return JsonResponse(answer, headers={"Cache-Control": "no-store"})


def as_json(found: Found) -> dict[str, Any]:
    lines = [ShownLine.of(line) for line in found.lines]
    return {
        "lines": [{"number": one.number, "text": one.text, "warns": one.warns, "gap": one.gap} for one in lines],
        "reached": found.reached,
        "more": found.more,
    }
