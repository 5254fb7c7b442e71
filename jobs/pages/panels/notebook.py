"""How somebody gets to the notebook that a job runs."""

from __future__ import annotations

from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, JobKind, JobState
from jobs.pages.panels.panel import JobPanel
from jobs.plans.notebook import TOKEN, way_to


def context(_request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any] | None:
    node = attempt.nodes.order_by("rank").first()
    if job.kind != JobKind.NOTEBOOK or attempt.state != JobState.RUNNING or node is None:
        return None
    way = way_to(node, job.environment)
    return {"way": way, "has_token": TOKEN in job.secret_names} if way else None


PANEL = JobPanel("notebook", "jobs/panels/notebook.html", context)
