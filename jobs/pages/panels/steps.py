"""Every change of a job, the newest first."""

from __future__ import annotations

from typing import Any

from fleet.panels import TimelineEntry
from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, JobEvent
from jobs.book.words import MARKS, event_detail, event_text
from jobs.findings.words import title_of
from jobs.pages.panels.panel import JobPanel

STEPS_SHOWN = 60


def step_lines(job: Job) -> list[TimelineEntry]:
    rows = job.events.select_related("node__instance", "attempt").order_by("-at", "-pk")[:STEPS_SHOWN]
    return [_step(event) for event in rows]


def _step(event: JobEvent) -> TimelineEntry:
    values = {**event.values, **({"machine": event.node.instance.name} if event.node else {})}
    if event.kind == "found":
        values["machine"] = title_of(str(event.values.get("code", "")))
    return TimelineEntry(
        at=event.at, text=event_text(event), detail=event_detail(values, event.detail), mark=MARKS.get(event.kind, "")
    )


def context(_request: TeamRequest, job: Job, _attempt: Attempt) -> dict[str, Any]:
    return {"steps": step_lines(job)}


PANEL = JobPanel("steps", "jobs/panels/steps.html", context, place="side")
