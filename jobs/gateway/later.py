"""Requests that were left: taken when they are due, given back when the gateway is full, kept with their answer when it came."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.gateway.manage import KEPT
from jobs.gateway.models import Gateway, LaterRequest

MOST_ANSWER_BYTES = 8 * 1024 * 1024
AT_ONCE = 32
# A gateway that is full or has no replica is asked again; nothing of it has reached a server.
FULL = frozenset({429, 503})
TRIED_FOR = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Sending:
    """`number`: of the request; goes to `path` of gateway `name`."""

    number: uuid.UUID
    name: str
    path: str
    body: bytes = field(repr=False)
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Sent:
    """`status` None: nobody knows what became of it. `wait_seconds`: of Retry-After."""

    number: uuid.UUID
    status: int | None
    content_type: str = ""
    answer: bytes = field(default=b"", repr=False)
    wait_seconds: int = 2


def take_due(*, gateways: Collection[Gateway], under_way: int, now: datetime) -> list[Sending]:
    """Those whose turn it is, now running; each to one process alone."""
    due = LaterRequest.objects.filter(gateway__in=gateways, state="queued", next_at__lte=now).order_by("next_at")
    found = []
    for row in due.select_related("gateway")[: max(AT_ONCE - under_way, 0)]:
        mine = LaterRequest.objects.filter(pk=row.pk, state="queued")
        if mine.update(state="running", started_at=now, tries=row.tries + 1):
            found.append(Sending(row.pk, row.gateway.name, row.path, bytes(row.body), row.gateway.timeout_seconds))
    return found


def keep_answer(*, sent: Sent, now: datetime) -> None:
    rows = LaterRequest.objects.filter(pk=sent.number, state="running")
    row = rows.first()
    if row is None:
        return
    if sent.status in FULL and now - row.created_at < TRIED_FOR:
        wait = min(max(sent.wait_seconds, 1) * min(row.tries, 10), 300)
        rows.update(state="queued", next_at=now + timedelta(seconds=wait))
        return
    failed = sent.status is None or sent.status in FULL or sent.status == 504
    rows.update(
        state="failed" if failed else "done",
        status=sent.status,
        content_type=sent.content_type[:100],
        answer=sent.answer,
        ended_at=now,
        body=b"",
    )


def give_up_lost(*, now: datetime) -> int:
    """Of a process that was killed: whether a server computed them nobody knows, so they are not sent again. Called as one starts."""
    return LaterRequest.objects.filter(state="running").update(state="failed", ended_at=now, body=b"")


def forget_old(*, now: datetime) -> int:
    return LaterRequest.objects.filter(ended_at__lte=now - KEPT).delete()[0]
