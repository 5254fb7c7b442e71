"""What pages show of jobs: lines of the list, and one job with its machines, figures, findings and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from fleet.inventory.models import SshHost
from fleet.inventory.remote import fingerprint
from fleet.panels import TimelineEntry
from fleet.teams.models import Team
from jobs.book.models import Attempt, Job, JobEvent, Node
from jobs.book.words import MARKS, error_text, event_detail, event_text, why_text
from jobs.findings.models import JobFinding
from jobs.findings.words import reason_text, remedy_text, title_of
from jobs.metrics.models import JobPoint

# What a page shows of a job's steps.
STEPS_SHOWN = 60
SURE_DOTS = {"certain": 5, "likely": 4, "possible": 2}


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


@dataclass(frozen=True, slots=True)
class NodeLine:
    """`offered`: the fingerprint of a host key that waits for somebody's word."""

    node: Node
    mark: str
    error: str
    offered: str
    host: SshHost | None


def node_lines(attempt: Attempt) -> list[NodeLine]:
    nodes = list(attempt.nodes.select_related("instance").order_by("rank"))
    hosts = {
        host.instance_id: host
        for host in SshHost.objects.filter(instance__in=[node.instance_id for node in nodes]).exclude(offered="")
    }
    found = []
    for node in nodes:
        host = hosts.get(node.instance_id)
        waits = host is not None and node.error in {"host_key_new", "host_key_changed"}
        offered = fingerprint(host.offered) if waits and host else ""
        found.append(
            NodeLine(
                node, MARKS[node.state], error_text(node.error) if node.error else "", offered, host if waits else None
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class FindingLine:
    row: JobFinding

    @property
    def title(self) -> str:
        return title_of(self.row.code)

    @property
    def dots(self) -> list[bool]:
        lit = SURE_DOTS.get(self.row.sure, 1)
        return [number < lit for number in range(5)]

    @property
    def reasons(self) -> list[str]:
        texts = (reason_text(reason["code"], reason["values"]) for reason in self.row.because)
        return [text for text in texts if text]

    @property
    def remedies(self) -> list[str]:
        texts = (remedy_text(one["code"], one["values"], one.get("saves_bytes")) for one in self.row.remedies)
        return [text for text in texts if text]

    @property
    def lines(self) -> Sequence[int]:
        return list(self.row.lines)


def finding_lines(attempt: Attempt) -> list[FindingLine]:
    order = list(SURE_DOTS)
    rows = JobFinding.objects.filter(attempt=attempt, gone_at=None)
    return [FindingLine(row) for row in sorted(rows, key=lambda row: order.index(row.sure))]


def step_lines(job: Job) -> list[TimelineEntry]:
    """The newest first."""
    rows = job.events.select_related("node__instance", "attempt").order_by("-at", "-pk")[:STEPS_SHOWN]
    return [_step(event) for event in rows]


def _step(event: JobEvent) -> TimelineEntry:
    values = {**event.values, **({"machine": event.node.instance.name} if event.node else {})}
    if event.kind == "found":
        values["machine"] = title_of(str(event.values.get("code", "")))
    return TimelineEntry(
        at=event.at, text=event_text(event), detail=event_detail(values, event.detail), mark=MARKS.get(event.kind, "")
    )


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
