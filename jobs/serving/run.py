"""Looks at a server and writes down what was found: a row for the look, how it stands, its readings, and whether it is to be started anew."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from fleet.guard import Guard
from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import private_keys
from fleet.telemetry.sanitise import clean
from fleet.telemetry.scrape.page import NotMetricsError
from fleet.telemetry.scrape.readings import UnusableError
from fleet.telemetry.serving.engines import ENGINES
from fleet.telemetry.serving.from_page import read_page
from fleet.telemetry.serving.keep import keep_readings
from fleet.telemetry.serving.models import ServingLatest
from jobs.book.events import note
from jobs.book.models import Attempt, JobState
from jobs.book.serving import Restart, Serving
from jobs.book.signals import announce
from jobs.runner.places import places_of
from jobs.serving.ask import Answer, Question, ask
from jobs.serving.due import claim, pause
from jobs.serving.models import Probe, Server, ServerState

logger = logging.getLogger(__name__)
# So many looks in a row, and it is down; one that does not come back is then ended, where its order says so.
DOWN_AFTER, ENDED_AFTER = 3, 8
# Loading hundreds of gigabytes over a network takes its time.
STARTS_WITHIN = timedelta(hours=1)
# Older readings of somebody else say nothing of who reads it now.
AGENT_SILENT = timedelta(minutes=2)


def look_at(*, server_id: int, now: datetime | None = None) -> Server | None:
    """None: it is not due, or its claim passed on while it was looked at."""
    now = now or timezone.now()
    server = claim(server_id=server_id, now=now)
    if server is None:
        return None
    serving = Serving.of(server.node.attempt.job.serving)
    assert serving is not None, "only serving jobs have servers"
    by_agent = is_read_by_agent(server, serving, now)
    question = question_of(server, serving, by_agent=by_agent)
    answer = asyncio.run(ask(question, guard=Guard.of(settings.ALLOWED_NETWORKS)))
    return take_in(server, serving, answer, by_agent=by_agent, at=now)


def question_of(server: Server, serving: Serving, *, by_agent: bool) -> Question:
    node = server.node
    team_id = node.attempt.job.team_id
    hosts = list(SshHost.objects.filter(instance=node.instance))
    engine = ENGINES.get(serving.engine)
    return Question(
        marker=node.attempt.marker,
        serving=serving,
        addresses=places_of(node.instance, hosts),
        private_key=private_keys([team_id]).get(team_id, ""),
        is_new=server.ready_at is None,
        metrics_path="" if by_agent else engine.path if engine else "/metrics",
    )


def is_read_by_agent(server: Server, serving: Serving, now: datetime) -> bool:
    """Two that store the same counters would count every request twice. Whoever is not us is the machine's agent, which sees it sooner."""
    rows = ServingLatest.objects.filter(
        instance=server.node.instance_id,
        port__in=[serving.port, serving.metrics_port or serving.port],
        sampled_at__gt=max(now - AGENT_SILENT, server.node.attempt.created_at),
    )
    return rows.exclude(sampled_at=server.read_at).exists() if server.read_at else rows.exists()


@transaction.atomic
def take_in(server: Server, serving: Serving, answer: Answer, *, by_agent: bool, at: datetime) -> Server | None:
    """Under the claim: None where it has passed on."""
    locked = Server.objects.select_for_update().filter(pk=server.pk, claim=server.claim).first()
    if locked is None:
        return None
    locked.node = server.node
    _stand(locked, answer, at)
    locked.looked_at, locked.read_by_agent = at, by_agent
    _read(locked, serving, answer, at)
    Probe.objects.create(
        server=locked,
        at=at,
        is_up=answer.is_up,
        seconds=answer.seconds,
        code=answer.code,
        memory_bytes=answer.memory_bytes,
    )
    if answer.is_up is not None and is_to_end(locked, serving, at):
        end_attempt_of(locked, why="unhealthy", at=at)
    locked.claim, locked.next_at = None, at + pause(reached=answer.is_up is not None, failures=_unreached(locked))
    locked.save()
    return locked


def _stand(server: Server, answer: Answer, at: datetime) -> None:
    server.code, server.detail = answer.code, clean(answer.detail)[:200]
    if answer.models is not None:
        server.model_names = [clean(name) for name in answer.models]
    if answer.is_up is None:
        return
    server.failures = 0 if answer.is_up else server.failures + 1
    if answer.is_up and server.ready_at is None:
        server.ready_at, server.short_answers = at, list(answer.short_answers)
        _enter(server, ServerState.UP, "ready", at)
    elif answer.is_up and server.state == ServerState.DOWN:
        _enter(server, ServerState.UP, "server_up", at)
    elif server.state == ServerState.UP and server.failures >= DOWN_AFTER:
        _enter(server, ServerState.DOWN, "server_down", at)


def _enter(server: Server, state: ServerState, kind: str, at: datetime) -> None:
    server.state, server.since = state, at
    attempt = server.node.attempt
    note(
        attempt.job, kind, at=at, attempt=attempt, node=server.node, values={"code": server.code} if server.code else {}
    )


def _read(server: Server, serving: Serving, answer: Answer, at: datetime) -> None:
    server.metrics_code = answer.metrics_code
    if answer.page is None:
        return
    try:
        readings, server.counters = read_page(answer.page, port=serving.port, memory=server.counters, at=at.timestamp())
    except (NotMetricsError, UnusableError):
        readings = []
    if not readings:
        server.metrics_code = "not_metrics"
    elif keep_readings(instance_id=server.node.instance_id, readings=readings, at=at):
        server.read_at = at


def _unreached(server: Server) -> int:
    newest = server.probes.order_by("-at").values_list("is_up", flat=True)[:5]
    return next((number for number, is_up in enumerate(newest) if is_up is not None), len(newest))


def is_to_end(server: Server, serving: Serving, at: datetime) -> bool:
    """A second machine of a job that never served has another part in it: only the first has to become ready."""
    if serving.restart != Restart.ON_UNHEALTHY:
        return False
    if server.ready_at is None:
        return server.node.rank == 0 and at - (server.node.started_at or at) >= STARTS_WITHIN
    return server.failures >= ENDED_AFTER


def end_attempt_of(server: Server, *, why: str, at: datetime) -> bool:
    """Has it ended politely; what follows is the runner's to say. False: it ends already."""
    attempt = server.node.attempt
    open_one = Attempt.objects.filter(pk=attempt.pk, state=JobState.RUNNING, end_asked="")
    if not open_one.update(end_asked=why, next_at=at):
        return False
    transaction.on_commit(partial(announce, attempt.pk))
    return True
