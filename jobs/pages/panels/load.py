"""The newest load test of a job that serves, and the way to begin one."""

from __future__ import annotations

from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.pages.load_shown import LoadLine
from jobs.pages.loading import asked_test
from jobs.pages.panels.panel import JobPanel


def context(_request: TeamRequest, job: Job, _attempt: Attempt) -> dict[str, Any] | None:
    if not job.serving:
        return None
    test = asked_test(job, "")
    return {"load": LoadLine(test) if test else None}


PANEL = JobPanel("load", "jobs/panels/load.html", context)
