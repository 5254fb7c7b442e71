"""Which servers are looked at, by whom, and when again. A worker that dies leaves its claim to run out."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db.models import QuerySet

from jobs.book.models import JobKind, JobState, Node
from jobs.serving.models import Server

EVERY = timedelta(seconds=15)
# Longer than a look may take (tasks.HARD_LIMIT_SECONDS).
LEASE = timedelta(minutes=5)
SLOWEST = timedelta(minutes=2)


def add_servers(*, now: datetime) -> int:
    """For each machine on which a serving job has begun to run."""
    nodes = (
        Node.objects.filter(
            attempt__job__kind=JobKind.SERVING, attempt__state=JobState.RUNNING, ended_at=None, server=None
        )
        .exclude(started_at=None)
        .exclude(attempt__job__serving={})
    )
    rows = Server.objects.bulk_create(
        [Server(node=node, since=now, next_at=now) for node in nodes], ignore_conflicts=True
    )
    return len(rows)


def due(*, now: datetime) -> QuerySet[Server]:
    return Server.objects.filter(node__attempt__state=JobState.RUNNING, node__ended_at=None, next_at__lte=now)


def claim(*, server_id: int, now: datetime) -> Server | None:
    """None: somebody else was quicker, or it runs no more."""
    mine = uuid.uuid4()
    if not due(now=now).filter(pk=server_id).update(claim=mine, next_at=now + LEASE):
        return None
    known = "node__attempt__job__team", "node__instance"
    return Server.objects.select_related(*known).filter(pk=server_id, claim=mine).first()


def pause(*, reached: bool, failures: int) -> timedelta:
    """A machine that cannot be reached is asked less and less often; a server that is down as often as before."""
    return EVERY if reached else min(SLOWEST, EVERY * (1 << min(failures, 4)))
