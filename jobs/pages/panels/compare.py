"""Another run beside this one, where the address names one."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.pages.compare import compared_rows
from jobs.pages.panels.panel import JobPanel
from jobs.pages.series import other_in


def context(request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any] | None:
    other = other_in(request, job)
    if other is None:
        return None
    return {"other": other.job, "rows": compared_rows(job, attempt, other, timezone.now())}


PANEL = JobPanel("compare", "jobs/panels/compare.html", context)
