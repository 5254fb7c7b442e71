"""What pages show of jobs: lines of the list, and the figures of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, QuerySet, Subquery

from fleet.teams.models import Team
from jobs.book.models import Attempt, Job
from jobs.book.words import MARKS, why_text
from jobs.metrics.models import JobPoint


def jobs_of(team: Team) -> QuerySet[Job]:
    """With what a line of the list needs."""
    newest = JobPoint.objects.filter(attempt__job=OuterRef("pk"), step__isnull=False).order_by("-at", "-pk")
    rows = Job.objects.filter(team=team).select_related("project", "created_by")
    rows = rows.prefetch_related("attempts__nodes__instance")
    return rows.annotate(step=Subquery(newest.values("step")[:1]), steps=Subquery(newest.values("steps")[:1]))


@dataclass(frozen=True, slots=True)
class JobLine:
    job: Job
    now: datetime

    @property
    def mark(self) -> str:
        return MARKS[self.job.state]

    @property
    def why(self) -> str:
        return why_text(self.job.why) if self.job.why else ""

    @property
    def attempt(self) -> Attempt | None:
        return max(self.job.attempts.all(), key=lambda attempt: attempt.number, default=None)

    @property
    def machines(self) -> list[str]:
        return [node.instance.name for node in self.attempt.nodes.all()] if self.attempt else []

    @property
    def lasted(self) -> timedelta | None:
        began = self.job.started_at
        return (self.job.ended_at or self.now) - began if began else None
