"""All jobs of a team: those that go on first, then the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.core.paginator import Paginator
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet.teams.access import TeamRequest
from fleet.teams.models import Role, Team
from jobs.book.models import OPEN_STATES, Job, JobKind, JobState
from jobs.pages.money import cost_text
from jobs.pages.shown import JobLine, job_lines, jobs_of
from jobs.spending.cost import costs_of_jobs

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reading of the address; what makes no sense in it is left out."""

    state: str = ""
    kind: str = ""
    search: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        return cls(
            state=word if (word := query.get("state", "")) in {"open", *JobState.values} else "",
            kind=word if (word := query.get("kind", "")) in JobKind.values else "",
            search=query.get("q", "").strip()[:200],
        )

    @property
    def filters(self) -> bool:
        return bool(self.state or self.kind or self.search)

    def narrow(self, rows: QuerySet[Job]) -> QuerySet[Job]:
        if self.state:
            rows = rows.filter(state__in=OPEN_STATES if self.state == "open" else [self.state])
        if self.kind:
            rows = rows.filter(kind=self.kind)
        return rows.filter(name__icontains=self.search) if self.search else rows


def with_costs(lines: Sequence[JobLine], team: Team, now: datetime) -> list[JobLine]:
    costs = costs_of_jobs([line.job for line in lines], team, now)
    return [replace(line, cost=cost_text(costs[line.job.pk]) if line.job.started_at else "") for line in lines]


@require_safe
def jobs(request: TeamRequest) -> HttpResponse:
    now, wanted = timezone.now(), Wanted.of(request.GET)
    ended = Case(When(state__in=OPEN_STATES, then=Value(0)), default=Value(1))
    rows = wanted.narrow(jobs_of(request.team)).annotate(ended=ended).order_by("ended", "-created_at", "-pk")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    lines = with_costs(job_lines(list(page), now), request.team, now)
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "nav": "jobs",
        "wanted": wanted,
        "page": page,
        "lines": lines,
        "any_open": any(line.job.is_open for line in lines),
        "query": query.urlencode(),
        "kinds": JobKind.choices,
        "states": JobState.choices,
        "may_launch": request.membership.can(Role.OPERATOR),
    }
    return render(request, "jobs/list_rows.html" if request.htmx else "jobs/list.html", context)
