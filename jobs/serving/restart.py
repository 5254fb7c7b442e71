"""Starting a server anew because somebody asks for it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import transaction

from fleet.teams.audit import Actor, record
from jobs.book.events import note
from jobs.book.models import Attempt, Job, JobKind, JobState
from jobs.book.signals import announce


@transaction.atomic
def restart_server(*, actor: Actor, job: Job, now: datetime) -> bool:
    """Ended politely, then begun again on the same machines, whatever its policy. False: it does not run, or ends already."""
    running = Attempt.objects.filter(
        job=job, job__kind=JobKind.SERVING, job__stop_asked_at=None, state=JobState.RUNNING, end_asked=""
    )
    attempt = running.select_for_update(of=("self",)).first()
    if attempt is None:
        return False
    Attempt.objects.filter(pk=attempt.pk).update(end_asked="restart", next_at=now)
    note(job, "restart_asked", at=now, attempt=attempt, by=actor.user)
    record(actor=actor, team=job.team, action="job.restart", target=job, new={"name": job.name})
    transaction.on_commit(partial(announce, attempt.pk))
    return True
