"""A job's log over the API: some lines of it, or all of it as it grows."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.parameters import number_of, word_of
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.telemetry.api.metrics import AnyAccept
from jobs.api.handover import Following, leave_to_wait
from jobs.book.models import Job, Node
from jobs.logs.read import Reading, last_lines, line_count, lines_from

MOST_LINES, LINES = 2_000, 200
BIGGEST = 10**15
LONGEST_WORDS = 200
LOG_EXAMPLE = {
    "job": 7,
    "attempt": 1,
    "rank": 0,
    "lines": [{"number": 412, "text": "step 1200/4000 loss 1.874", "left_out_bytes": 0}],
    "next_from": 413,
    "more": False,
    "line_count": 412,
}


class LogLineSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    text = serializers.CharField(help_text="As it was written, colours and all; whoever shows it has to escape it.")
    left_out_bytes = serializers.IntegerField(source="left_out", help_text="Missing before it.")


@extend_schema_serializer(examples=[OpenApiExample("log", LOG_EXAMPLE)])
class LogSerializer(serializers.Serializer[dict[str, Any]]):
    job = serializers.IntegerField()
    attempt = serializers.IntegerField()
    rank = serializers.IntegerField()
    lines = LogLineSerializer(many=True)
    next_from = serializers.IntegerField(help_text="What to send as `from` for what comes behind these lines.")
    more = serializers.BooleanField(help_text="Whether more is there already.")
    line_count = serializers.IntegerField(help_text="Number of the newest line.")


PARAMETERS = [
    OpenApiParameter("rank", int, description="Whose log of several machines; 0 unless told."),
    OpenApiParameter("attempt", int, description="Its number; the newest unless told."),
    OpenApiParameter("from", int, description="Number of the first line, from 1; the last lines unless told."),
    OpenApiParameter("limit", int, description=f"Lines in one answer, {LINES} unless told and {MOST_LINES} at most."),
    OpenApiParameter("q", str, description="Only lines in which this stands, without regard to case."),
    OpenApiParameter(
        "follow", bool, description="true: plain text, a line a line, from the first on, kept open until the job ends."
    ),
    OpenApiParameter("numbers", bool, description="With follow: the number and a tab before each line."),
]


class JobLogView(ApiView):
    """Lines of one machine's log, or with `follow=true` all of it as plain text while it grows.

    Lines come as the machines are visited, every 2 seconds of a young job. An answer that is followed ends with the job, or after 6 hours.
    """

    serializer_class = LogSerializer
    content_negotiation_class = AnyAccept
    known_parameters = ("rank", "attempt", "from", "limit", "q", "follow", "numbers")
    file_answers = {"text/plain": OpenApiTypes.STR}

    @extend_schema(parameters=PARAMETERS)
    def get(self, request: Request, pk: int) -> Response | HttpResponse:
        access = Access.of_request(request)
        job = Job.objects.filter(pk=pk, team__in=[team.pk for team in access.teams]).first()
        if job is None:
            raise Http404
        attempt = number_of(request, "attempt", low=1, high=10_000, default=0)
        node = node_of(job, attempt, number_of(request, "rank", low=0, high=10_000, default=0))
        if word_of(request, "follow", ("true", "false"), default="false") == "true":
            return self._followed(request, node, is_one=bool(attempt))
        return Response(self._lines(request, node))

    def _followed(self, request: Request, node: Node, *, is_one: bool) -> HttpResponse:
        attempt = node.attempt
        leave_to_wait(
            request,
            Following(
                job=attempt.job_id,
                rank=node.rank,
                attempt=attempt.number if is_one else None,
                first=number_of(request, "from", low=1, high=BIGGEST, default=1),
                words=words_of(request),
                numbers=word_of(request, "numbers", ("true", "false"), default="false") == "true",
            ),
        )
        # Of the answer only its head is used; proxies must not keep lines back.
        headers = {"X-Content-Type-Options": "nosniff", "X-Accel-Buffering": "no"}
        return HttpResponse(content_type="text/plain; charset=utf-8", headers=headers)

    def _lines(self, request: Request, node: Node) -> dict[str, Any]:
        most, words = number_of(request, "limit", low=1, high=MOST_LINES, default=LINES), words_of(request)
        if "from" in request.query_params or words:
            first = number_of(request, "from", low=1, high=BIGGEST, default=1)
            reading = lines_from(node, first, words=words, most=most)
        else:
            lines = last_lines(node, most)
            reading = Reading(lines, lines[-1].number + 1 if lines else 1, more=False)
        shown = {
            "job": node.attempt.job_id,
            "attempt": node.attempt.number,
            "rank": node.rank,
            "lines": reading.lines,
            "next_from": reading.next_number,
            "more": reading.more,
            "line_count": line_count(node),
        }
        return dict(LogSerializer(shown).data)


def node_of(job: Job, attempt: int, rank: int) -> Node:
    """Of the newest attempt, where none is named. Raises ValidationError."""
    rows = Node.objects.filter(attempt__job=job).select_related("attempt").order_by("-attempt__number", "rank")
    if attempt and not rows.filter(attempt__number=attempt).exists():
        raise ValidationError({"attempt": _("It has no such attempt.")})
    number = attempt or rows.values_list("attempt__number", flat=True).first() or 0
    node = rows.filter(attempt__number=number, rank=rank).first()
    if node is None:
        raise ValidationError({"rank": _("It has no such machine.")})
    return node


def words_of(request: Request) -> str:
    words = request.query_params.get("q", "").strip()
    if len(words) > LONGEST_WORDS or "\0" in words:
        raise ValidationError({"q": _("Give at most %(n)d characters.") % {"n": LONGEST_WORDS}})
    return words
