"""What was ordered."""

from __future__ import annotations

from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.pages.panels.panel import JobPanel


def context(_request: TeamRequest, _job: Job, _attempt: Attempt) -> dict[str, Any]:
    return {}


PANEL = JobPanel("facts", "jobs/panels/facts.html", context, place="side")
