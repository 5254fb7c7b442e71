"""What pages show of jobs: lines of the list, and the figures of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import OuterRef, QuerySet, Subquery

from fleet.teams.models import Team
from jobs.book.models import Attempt, Job
from jobs.book.words import MARKS, why_text
from jobs.findings.models import JobFinding
from jobs.findings.words import title_of
from jobs.metrics.models import JobPoint

SURE_ORDER = ("certain", "likely", "possible")


def jobs_of(team: Team) -> QuerySet[Job]:
    """With what a line of the list needs."""
    newest = JobPoint.objects.filter(attempt__job=OuterRef("pk"), step__isnull=False).order_by("-at", "-pk")
    rows = Job.objects.filter(team=team).select_related("project", "created_by", "rerun_of")
    rows = rows.prefetch_related("attempts__nodes__instance")
    return rows.annotate(step=Subquery(newest.values("step")[:1]), steps=Subquery(newest.values("steps")[:1]))


@dataclass(frozen=True, slots=True)
class JobLine:
    """`finding`: the surest of what stands of its newest attempt, in words. `cost`: "" = not known."""

    job: Job
    now: datetime
    finding: str = ""
    cost: str = ""

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

    @property
    def step_text(self) -> str:
        step: int | None = self.job.step  # type: ignore[attr-defined]  # annotated by jobs_of
        return "" if step is None else f"{step:,}"

    @property
    def steps_text(self) -> str:
        steps: int | None = self.job.steps  # type: ignore[attr-defined]  # annotated by jobs_of
        return f"{steps:,}" if steps else ""

    @property
    def share(self) -> str:
        """Percent as CSS writes it; "" = not known."""
        step, steps = self.job.step, self.job.steps  # type: ignore[attr-defined]  # annotated by jobs_of
        return f"{100 * min(step, steps) / steps:.1f}" if step is not None and steps else ""


def job_lines(jobs: Sequence[Job], now: datetime) -> list[JobLine]:
    """With the surest finding of each, in one more query."""
    lines = [JobLine(job, now) for job in jobs]
    newest = {line.attempt.pk: line.job.pk for line in lines if line.attempt}
    found: dict[int, JobFinding] = {}
    for row in JobFinding.objects.filter(attempt__in=newest, gone_at=None).order_by("found_at"):
        best = found.get(newest[row.attempt_id])
        if best is None or SURE_ORDER.index(row.sure) < SURE_ORDER.index(best.sure):
            found[newest[row.attempt_id]] = row
    titles = {pk: title_of(row.code) for pk, row in found.items()}
    return [replace(line, finding=titles.get(line.job.pk, "")) for line in lines]
