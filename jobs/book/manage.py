"""What people may do with jobs: ask for one, have it stopped, run it again. Each writes rows; the runner does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError, transaction

from fleet.inventory.credentials import CredentialError, open_sealed, seal
from fleet.inventory.machines import place_hold
from fleet.inventory.models import HoldKind, Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team
from jobs.book.events import note
from jobs.book.limits import refuse_budget
from jobs.book.models import OPEN_STATES, Attempt, Job, JobKind, JobState, Node, WhenDone
from jobs.book.names import new_marker
from jobs.book.order import JobRefused, Order
from jobs.book.refusing import refuse_machines, refuse_order, refuse_upload
from jobs.book.serving import refuse_serving
from jobs.book.signals import announce


@transaction.atomic
def create_job(
    *,
    actor: Actor,
    team: Team,
    order: Order,
    machines: Sequence[Instance],
    now: datetime,
    idempotency_key: str = "",
    rerun_of: Job | None = None,
) -> Job:
    """The job with its first attempt, its machines held from now on. The same key again gives the job that it began. Raises JobRefused."""
    known = Job.objects.filter(team=team, idempotency_key=idempotency_key).first() if idempotency_key else None
    if known is not None:
        return known
    refuse_order(order, now)
    refuse_upload(team, order)
    locked = refuse_machines(team, machines)
    refuse_budget(team, order, locked, now)
    job = _row(actor=actor, team=team, order=order, now=now, key=idempotency_key, rerun_of=rerun_of)
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        return Job.objects.get(team=team, idempotency_key=idempotency_key)
    note(job, JobState.QUEUED.value, at=now, by=actor.user)
    add_attempt(actor=actor, job=job, machines=locked, now=now)
    new = {"name": job.name, "kind": job.kind, "machines": [machine.name for machine in locked]}
    record(actor=actor, team=team, action="job.create", target=job, new=new)
    return job


def add_attempt(
    *, actor: Actor, job: Job, machines: Sequence[Instance], now: datetime, wait: timedelta = timedelta(0)
) -> Attempt:
    """In the transaction of whoever asks. Its machines are held by the job until it ends. `wait`: before it begins."""
    number = job.attempts.count() + 1
    marker = new_marker()
    attempt = Attempt.objects.create(
        job=job, number=number, marker=marker, directory=f".rackrent/jobs/{marker}", created_at=now, next_at=now + wait
    )
    for rank, machine in enumerate(machines):
        hold = place_hold(
            actor=actor, instance=machine, kind=HoldKind.JOB, reason=job.name[:200], owner=job.created_by, now=now
        )
        Node.objects.create(attempt=attempt, instance=machine, rank=rank, hold=hold)
    transaction.on_commit(partial(announce, attempt.pk))
    return attempt


@transaction.atomic
def stop_job(*, actor: Actor, job: Job, now: datetime) -> bool:
    """Asks for it: politely, then firmly. False where it has ended, or was asked already."""
    asked = Job.objects.filter(pk=job.pk, stop_asked_at=None, state__in=OPEN_STATES)
    if not asked.update(stop_asked_at=now, stop_asked_by=actor.user):
        return False
    note(job, "stop_asked", at=now, by=actor.user)
    record(actor=actor, team=job.team, action="job.stop", target=job, new={"name": job.name})
    attempt = job.attempts.order_by("-number").first()
    if attempt is not None:
        Attempt.objects.filter(pk=attempt.pk).update(next_at=now)
        transaction.on_commit(partial(announce, attempt.pk))
    return True


def order_of(job: Job) -> Order:
    """To run it again. Raises CredentialError where its secrets cannot be opened any more."""
    names = (
        "name",
        "command",
        "project",
        "plan",
        "launcher",
        "predicted",
        "files",
        "environment",
        "repository",
        "revision",
        "upload",
        "data_path",
        "checkpoint_path",
        "processes_per_node",
        "retries",
        "resume_arguments",
        "serving",
        "installs",
        "starts_anyway",
        "budget_amount",
        "budget_currency",
    )
    return Order(
        kind=JobKind(job.kind),
        when_done=WhenDone(job.when_done),
        secrets=open_sealed(job.secrets),
        **{name: getattr(job, name) for name in names},
    )


def _row(*, actor: Actor, team: Team, order: Order, now: datetime, key: str, rerun_of: Job | None) -> Job:
    try:
        sealed = seal(order.secrets)
    except CredentialError as error:
        raise JobRefused("secrets", str(error)) from None
    names = (
        "name",
        "command",
        "kind",
        "project",
        "plan",
        "launcher",
        "repository",
        "revision",
        "upload",
        "data_path",
        "checkpoint_path",
        "processes_per_node",
        "retries",
        "resume_arguments",
        "installs",
        "starts_anyway",
        "when_done",
        "deadline_at",
        "budget_amount",
        "budget_currency",
    )
    serving = refuse_serving(order)
    return Job(
        team=team,
        serving=serving.to_json() if serving else {},
        predicted=dict(order.predicted),
        files=[dict(file) for file in order.files],
        environment=dict(order.environment),
        secrets=sealed,
        secret_names=sorted(order.secrets),
        created_at=now,
        state_since=now,
        created_by=actor.user,
        created_label=actor.label[:200],
        idempotency_key=key,
        rerun_of=rerun_of,
        **{name: getattr(order, name) for name in names},
    )
