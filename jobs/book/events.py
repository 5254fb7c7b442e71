"""Writing down what became of a job: its state and, beside it, the row that says so. Only these functions change a state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.teams.models import User
from jobs.book.models import OPEN_STATES, Attempt, Job, JobEvent, JobState, Node


def note(
    job: Job,
    kind: str,
    *,
    at: datetime,
    attempt: Attempt | None = None,
    node: Node | None = None,
    detail: str = "",
    values: Mapping[str, Any] | None = None,
    by: User | None = None,
) -> JobEvent:
    return JobEvent.objects.create(
        job=job, attempt=attempt, node=node, at=at, kind=kind, detail=detail[:500], values=dict(values or {}), by=by
    )


@transaction.atomic
def change_job(
    job: Job, state: JobState, *, at: datetime, why: str = "", by: User | None = None, attempt: Attempt | None = None
) -> bool:
    """False where it is in that state, or has ended, already."""
    fields: dict[str, Any] = {"state": state, "state_since": at, "why": why}
    if state == JobState.RUNNING:
        fields["started_at"] = job.started_at or at
    if state not in OPEN_STATES:
        fields["ended_at"] = at
    if not Job.objects.filter(pk=job.pk, state__in=OPEN_STATES).exclude(state=state).update(**fields):
        return False
    for name, value in fields.items():
        setattr(job, name, value)
    note(job, state.value, at=at, attempt=attempt, values={"why": why} if why else {}, by=by)
    return True
