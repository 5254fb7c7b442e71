"""What pages show of jobs: lines of the list, and the figures of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

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


def figures_of(attempt: Attempt) -> dict[str, Any]:
    """The newest of each figure that the run has told, and what the plan says of it."""
    figures: dict[str, Any] = {}
    names = (
        "step",
        "steps",
        "epoch",
        "loss",
        "eval_loss",
        "learning_rate",
        "seconds_per_step",
        "tokens_per_second",
        "tokens_per_gpu",
        "samples_per_second",
        "memory_bytes",
    )
    rows: Iterable[Mapping[str, Any]] = (
        JobPoint.objects.filter(attempt=attempt).order_by("-at", "-pk").values("at", *names)[:200]
    )
    for row in rows:
        for name in names:
            if row[name] is not None:
                figures.setdefault(name, row[name])
        figures.setdefault("at", row["at"])
    step, steps = figures.get("step"), figures.get("steps")
    if step is not None and steps:
        # As CSS writes it, whatever the reader's language.
        figures["share"] = f"{100 * min(step, steps) / steps:.1f}"
    return figures
