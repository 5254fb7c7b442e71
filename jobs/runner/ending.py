"""What follows the end of an attempt: another one, or the end of the job; and what becomes of its machines."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from fleet.inventory.machines import release_hold
from fleet.inventory.models import Instance
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.operations.requests import request_stop
from fleet.teams.audit import Actor
from jobs.book.events import change_job, note
from jobs.book.manage import add_attempt
from jobs.book.models import OPEN_STATES, Attempt, Job, JobState, Node, WhenDone
from jobs.book.serving import Serving
from jobs.book.signals import announce_end
from jobs.runner.restarts import Ended, Policy, wait_before_next

logger = logging.getLogger(__name__)
RUNNER = Actor.system("jobs")


def end_attempt(attempt: Attempt, nodes: Sequence[Node], *, now: datetime) -> None:
    """In the transaction that entered the attempt's state. Brings the job to where its attempt is."""
    job = attempt.job
    if attempt.state in OPEN_STATES:
        change_job(job, JobState(attempt.state), at=now, why=attempt.why, attempt=attempt)
        return
    if attempt.ended_at is not None:
        return
    attempt.ended_at = now
    attempt.save(update_fields=["ended_at"])
    for node in nodes:
        if node.hold is not None:
            release_hold(actor=RUNNER, hold=node.hold, now=now)
    wait = wait_of(job, nodes)
    if wait is not None:
        note(job, "retry", at=now, attempt=attempt, values={"number": attempt.number + 1, "why": attempt.why})
        add_attempt(actor=RUNNER, job=job, machines=[node.instance for node in nodes], now=now, wait=wait)
        change_job(job, JobState.QUEUED, at=now, why=attempt.why)
        return
    change_job(job, JobState(attempt.state), at=now, why=attempt.why, attempt=attempt)
    transaction.on_commit(partial(announce_end, job.pk))
    if job.when_done == WhenDone.STOP:
        for node in nodes:
            transaction.on_commit(partial(stop_machine, job, node.instance, now))


def wait_of(job: Job, nodes: Sequence[Node]) -> timedelta | None:
    """Until another attempt on the same machines, so only while all of them are there; None: there is none."""
    if any(node.instance.gone_at is not None for node in nodes):
        return None
    serving = Serving.of(job.serving)
    policy = Policy(job.retries, serving.most_restarts if serving and serving.is_restarted else None)
    ended = [
        Ended(one.state, one.why, one.ended_at - one.started_at if one.started_at and one.ended_at else timedelta(0))
        for one in job.attempts.order_by("number")
    ]
    return wait_before_next(ended, policy)


def stop_machine(job: Job, machine: Instance, now: datetime) -> None:
    """Off when done. What must not be stopped, such as a machine that somebody else holds, is left on and said."""
    try:
        request_stop(actor=RUNNER, instance=machine, idempotency_key=f"job:{job.pk}:{machine.pk}", now=now)
    except Refused as refusal:
        note(job, "not_stopped", at=now, detail=str(refusal), values={"machine": machine.name, "code": refusal.code})
        logger.info("Machine %d stays on after job %d: %s", machine.pk, job.pk, refusal.code)
