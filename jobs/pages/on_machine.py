"""What a machine's page shows of jobs: those that go on there, and what became of each on its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Q, Subquery
from django.utils.translation import gettext as _

from fleet.inventory.models import Instance
from fleet.panels import Context, TimelineEntry, timeline_limit
from fleet.teams.access import TeamRequest
from jobs.book.models import OPEN_STATES, Job, JobEvent, JobState, Node
from jobs.book.words import MARKS, event_detail, event_text
from jobs.findings.models import JobFinding
from jobs.findings.words import title_of
from jobs.metrics.models import JobPoint

# Steps that only the job's own page needs.
UNTOLD = frozenset({"prepared", "reached_again", "retry"})


@dataclass(frozen=True, slots=True)
class RunningHere:
    """`machines`: of the whole job. `found`: titles of what the diagnosis is sure of."""

    job: Job
    rank: int
    machines: int
    step: int | None
    steps: int | None
    found: Sequence[str]

    @property
    def mark(self) -> str:
        return MARKS[self.job.state]


def jobs_here(_request: TeamRequest, instance: Instance) -> Context | None:
    """Open jobs of this machine, the newest first; None where nothing runs. Three queries, however many there are."""
    newest = JobPoint.objects.filter(attempt=OuterRef("attempt"), step__isnull=False).order_by("-at", "-pk")
    nodes = list(
        Node.objects.filter(instance=instance, attempt__state__in=OPEN_STATES, attempt__job__state__in=OPEN_STATES)
        .select_related("attempt__job")
        .annotate(step=Subquery(newest.values("step")[:1]), steps=Subquery(newest.values("steps")[:1]))
        .order_by("-attempt__created_at")
    )
    if not nodes:
        return None
    attempts = [node.attempt_id for node in nodes]
    sizes = Node.objects.filter(attempt__in=attempts).values_list("attempt", flat=True)
    counts = {attempt: list(sizes).count(attempt) for attempt in attempts}
    rows = JobFinding.objects.filter(attempt__in=attempts, gone_at=None).exclude(sure="possible").order_by("found_at")
    found = [(row.attempt_id, title_of(row.code)) for row in rows]
    lines = [
        RunningHere(
            job=node.attempt.job,
            rank=node.rank,
            machines=counts[node.attempt_id],
            step=node.step,
            steps=node.steps,
            found=[title for attempt, title in found if attempt == node.attempt_id],
        )
        for node in nodes
    ]
    return {"lines": lines}


def told_jobs(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Of a machine: every step of jobs on it. Of a team: states that jobs entered, the newest."""
    rows = JobEvent.objects.filter(job__team=request.team, at__gte=since, at__lt=until).exclude(kind__in=UNTOLD)
    if instance is None:
        rows = rows.filter(kind__in=JobState.values)
    else:
        here = Node.objects.filter(instance=instance).values("attempt")
        rows = rows.filter(Q(node__instance=instance) | Q(node=None, attempt__in=here))
    newest = rows.select_related("job").order_by("-at", "-pk")[: timeline_limit(instance)]
    return {"entries": [_entry(event) for event in newest]}


def _entry(event: JobEvent) -> TimelineEntry:
    values = dict(event.values)
    if event.kind == "found":
        values["machine"] = title_of(str(values.get("code", "")))
    else:
        values.pop("machine", None)
    said = {"job": event.job.name, "what": event_text(event)}
    return TimelineEntry(
        at=event.at,
        text=_("Job %(job)s: %(what)s") % said,
        detail=event_detail(values, event.detail),
        mark="" if MARKS.get(event.kind) == "done" else MARKS.get(event.kind, ""),
    )
