"""The figures of a job's chart, for its page while it is looked at."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.pages.attempts import attempt_of, number_in
from jobs.pages.charts.figure import SPANS, WHOLE, figure_of


def span_in(request: HttpRequest) -> str:
    return asked if (asked := request.GET.get("span", "")) in SPANS else WHOLE


def other_in(request: TeamRequest, job: Job) -> Attempt | None:
    """`?with=`: the newest attempt of another job of the team."""
    asked = number_in(request.GET, "with")
    other = Job.objects.filter(pk=asked, team=request.team).exclude(pk=job.pk).first() if asked else None
    return attempt_of(other, "") if other else None


@require_safe
def job_series(request: TeamRequest, pk: int) -> JsonResponse:
    found = get_object_or_404(Job, pk=pk, team=request.team)
    attempt = attempt_of(found, request.GET.get("attempt", ""))
    figure = figure_of(found, attempt, span=span_in(request), now=timezone.now(), other=other_in(request, found))
    return JsonResponse(figure.as_json(), headers={"Cache-Control": "no-store"})
