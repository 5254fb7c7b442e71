"""Takes an attempt one step on: decide from rows, write that down, visit its machines, write what they said.

What is done on a machine is written before it is done. So whoever takes over after a crash looks first, and a launch that was asked for twice is one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from fleet.guard import Guard
from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import note_offered_key, private_keys
from fleet.providers.base import InstanceState
from jobs.book.models import OPEN_STATES, Attempt, JobState, Node
from jobs.runner.bundle import bundle
from jobs.runner.claims import claim, kept, release, still_mine
from jobs.runner.course import Act, Facts, NodeFacts, State, Step, advance
from jobs.runner.ending import end_attempt
from jobs.runner.machine import SentFile
from jobs.runner.meeting import REFUSED, has_met, has_said, hosts_of, interface_of, orders_of, settle
from jobs.runner.places import places_of
from jobs.runner.preparing import UNFIT, install_digest, is_installing
from jobs.runner.take_in import take_in
from jobs.runner.tells import tells_of
from jobs.runner.visit import Errand, Report, visit_all
from jobs.uploads.keep import packed_files

logger = logging.getLogger(__name__)
# A machine whose provider shows it so runs nothing any more.
OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})
SOON, LATER = timedelta(seconds=2), timedelta(seconds=10)
# So long a page is followed closely after a job began.
YOUNG = timedelta(minutes=30)
SLOWEST = timedelta(minutes=2)


def drive(*, attempt_id: int, now: datetime | None = None) -> bool:
    """False: somebody else has it, or there is nothing to do."""
    now = now or timezone.now()
    attempt = claim(attempt_id=attempt_id, now=now)
    if attempt is None:
        return False
    try:
        nodes = nodes_of(attempt)
        step = advance(facts_of(attempt, nodes, now))
        if not enter(attempt, nodes, step, now):
            return False
        if attempt.state in OPEN_STATES:
            with kept(attempt):
                go_round(attempt, nodes, step, now)
    finally:
        release(attempt, next_at=timezone.now() + pause(attempt))
    return True


def go_round(attempt: Attempt, nodes: Sequence[Node], step: Step, now: datetime) -> None:
    secrets = secrets_of(attempt)
    if secrets is None and attempt.state == JobState.PREPARING:
        # Nothing is begun without them.
        return
    errands = errands_of(attempt, nodes, step)
    if not errands:
        return
    reports = asyncio.run(visit_all(errands, guard=Guard.of(settings.ALLOWED_NETWORKS)))
    for report in reports:
        with transaction.atomic():
            if not still_mine(attempt):
                return
            take_in(
                attempt,
                Node.objects.select_for_update().get(pk=report.node),
                report if secrets is not None else replace(report, parts=(), ran_dry=True),
                secrets=secrets or {},
                at=timezone.now(),
            )
        _note_key(report, nodes, now)
    settle(attempt, nodes, reports, at=timezone.now())


def nodes_of(attempt: Attempt) -> list[Node]:
    return list(attempt.nodes.select_related("instance__account", "hold").order_by("rank"))


def facts_of(attempt: Attempt, nodes: Sequence[Node], now: datetime) -> Facts:
    return Facts(
        now=now,
        state=State(attempt.state),
        since=_since(attempt),
        nodes=tuple(node_facts(node, is_alone=len(nodes) == 1) for node in nodes),
        asked=asked_of(attempt, now),
        why=attempt.why,
    )


def _since(attempt: Attempt) -> datetime:
    event = attempt.events.filter(kind=attempt.state, node=None).order_by("-at").first()
    return event.at if event else attempt.created_at


def node_facts(node: Node, *, is_alone: bool) -> NodeFacts:
    return NodeFacts(
        asked=is_alone or has_said(node),
        met=is_alone or has_met(node),
        refused="no_way" if node.error in REFUSED else node.error if node.error in UNFIT else "",
        sent=node.uploaded_at is not None,
        installing=is_installing(node),
        prepared=node.prepared_at is not None,
        launched=node.launched_at is not None,
        started=node.started_at is not None,
        ended_at=node.ended_at,
        exit_code=node.exit_code,
        lost=node.error if node.state == JobState.LOST else "",
        machine_gone=node.instance.gone_at is not None or node.instance.state in OFF,
        term_sent_at=node.term_sent_at,
    )


def asked_of(attempt: Attempt, now: datetime) -> str:
    job = attempt.job
    if job.stop_asked_at is not None:
        return "asked"
    if job.deadline_at is not None and job.deadline_at <= now:
        return "deadline"
    return "budget" if job.budget_spent_at is not None else attempt.end_asked


@transaction.atomic
def enter(attempt: Attempt, nodes: Sequence[Node], step: Step, now: datetime) -> bool:
    """Writes the state and what is about to be done. False where the claim has passed on."""
    if not still_mine(attempt):
        return False
    if attempt.state != step.state:
        attempt.state, attempt.why = step.state.value, step.why
        if step.state is State.RUNNING:
            attempt.started_at = now
        attempt.save(update_fields=["state", "why", "started_at"])
    for node, act in zip(nodes, step.acts, strict=True):
        _intend(node, act, now)
    end_attempt(attempt, nodes, now=now)
    return True


def _intend(node: Node, act: Act, now: datetime) -> None:
    columns = {Act.INSTALL: "install_at", Act.LAUNCH: "launched_at", Act.TERM: "term_sent_at", Act.KILL: "kill_sent_at"}
    if (column := columns.get(act)) is not None:
        setattr(node, column, getattr(node, column) or now)
        node.save(update_fields=[column])


def errands_of(attempt: Attempt, nodes: Sequence[Node], step: Step) -> list[Errand]:
    key = private_keys([attempt.job.team_id]).get(attempt.job.team_id, "")
    hosts = list(SshHost.objects.filter(instance__in=[node.instance_id for node in nodes]))
    orders = orders_of(attempt, nodes) if Act.MEET in step.acts else {}
    sent = packed_files(attempt.job) if Act.PREPARE in step.acts else b""
    found = []
    for node, act in zip(nodes, step.acts, strict=True):
        if act is Act.NOTHING:
            continue
        places = places_of(node.instance, [host for host in hosts if host.instance_id == node.instance_id])
        found.append(
            Errand(
                node=node.pk,
                marker=attempt.marker,
                act=act,
                addresses=places,
                private_key=key,
                log_offset=node.log_offset,
                files=_files(attempt, node, nodes) if act is Act.PREPARE else (),
                upload=sent if act is Act.PREPARE else b"",
                meeting=orders.get(node.pk, {}),
                install=install_digest(attempt.job) if act is Act.INSTALL else "",
            )
        )
    return found


def _files(attempt: Attempt, node: Node, nodes: Sequence[Node]) -> list[SentFile]:
    return bundle(
        attempt=attempt,
        node=node,
        nodes=nodes,
        hosts=hosts_of(nodes),
        interface=interface_of(node),
        secrets=secrets_of(attempt) or {},
        tells=tells_of(attempt),
    )


def secrets_of(attempt: Attempt) -> Mapping[str, str] | None:
    """None: they cannot be opened with the keys of this installation, so that no log can be kept that may show them."""
    try:
        return open_sealed(attempt.job.secrets)
    except CredentialError:
        logger.warning("The secrets of job %d cannot be opened", attempt.job_id)
        return None


def _note_key(report: Report, nodes: Sequence[Node], now: datetime) -> None:
    """For a person to look at; it trusts nothing."""
    if report.offered and report.offered_by is not None:
        node = next(node for node in nodes if node.pk == report.node)
        note_offered_key(instance_id=node.instance_id, address=report.offered_by, public_key=report.offered, now=now)


def pause(attempt: Attempt) -> timedelta:
    """A machine that cannot be reached is asked less and less often, one that runs for long too."""
    failures = max(Node.objects.filter(attempt=attempt).values_list("failures", flat=True), default=0)
    if failures:
        return min(SLOWEST, SOON * (1 << min(failures, 8)))
    began = attempt.started_at
    return LATER if attempt.state == State.RUNNING and began and timezone.now() - began > YOUNG else SOON
