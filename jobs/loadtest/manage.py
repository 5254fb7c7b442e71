"""What people may do with load tests: ask for one, call it off. Each writes rows; the worker does the rest."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError, transaction
from django.dispatch import Signal
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.teams.audit import Actor, record
from jobs.book.models import Attempt, Job, JobState, Node
from jobs.book.serving import Serving
from jobs.loadtest.models import OPEN_LOAD_STATES, LoadState, LoadTest
from jobs.loadtest.plan import LoadPlan, PlanProblem
from jobs.loadtest.words import problem_text

# Heard after the commit: `test_id` waits to be run.
load_test_due = Signal()
# A worker writes every second how far it is; one that was killed does not.
SILENT, NEVER_BEGUN = timedelta(minutes=2), timedelta(hours=1)


class LoadRefused(ValueError):
    """Why it is not begun; `field` names what has to be changed."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


def begin_load_test(*, actor: Actor, job: Job, plan: LoadPlan, key_name: str = "", now: datetime) -> LoadTest:
    """Raises LoadRefused."""
    try:
        plan.check()
    except PlanProblem as problem:
        raise LoadRefused(problem.field, problem_text(problem)) from None
    attempt = _attempt_of(job)
    if key_name and key_name not in {*job.environment, *job.secret_names}:
        raise LoadRefused("key_name", _("The job has no variable of that name."))
    try:
        return _begin(actor=actor, attempt=attempt, plan=plan, key_name=key_name, now=now)
    except IntegrityError:
        raise LoadRefused("", _("One is under way already: wait for its end, or call it off.")) from None


def _attempt_of(job: Job) -> Attempt:
    """The one that serves. Raises LoadRefused."""
    if Serving.of(job.serving) is None:
        raise LoadRefused("", _("This job serves nothing: there is nothing to load."))
    attempt = job.attempts.filter(state=JobState.RUNNING).order_by("-number").first()
    if attempt is None or not serving_nodes(attempt):
        raise LoadRefused("", _("The job does not run. Begin when it does."))
    return attempt


def serving_nodes(attempt: Attempt) -> list[Node]:
    """The machines of an attempt that run: each is a replica."""
    nodes = attempt.nodes.filter(state=JobState.RUNNING, started_at__isnull=False, ended_at=None)
    return list(nodes.select_related("instance").order_by("rank"))


@transaction.atomic
def _begin(*, actor: Actor, attempt: Attempt, plan: LoadPlan, key_name: str, now: datetime) -> LoadTest:
    job = attempt.job
    test = LoadTest.objects.create(
        job=job,
        attempt=attempt,
        plan=asdict(plan),
        key_name=key_name,
        replicas=len(serving_nodes(attempt)),
        asked_at=now,
        asked_by=actor.user,
        asked_label=actor.label[:200],
    )
    new = {"name": job.name, "levels": list(plan.levels), "most_requests": plan.most_requests}
    record(actor=actor, team=job.team, action="load_test.begin", target=job, new=new)
    transaction.on_commit(partial(load_test_due.send_robust, sender=None, test_id=test.pk))
    return test


@transaction.atomic
def cancel_load_test(*, actor: Actor, test: LoadTest, now: datetime) -> bool:
    """One that runs stops within a second or two. False where it has ended, or was called off already."""
    rows = LoadTest.objects.filter(pk=test.pk, cancel_asked_at=None)
    if not rows.filter(state__in=OPEN_LOAD_STATES).update(cancel_asked_at=now):
        return False
    LoadTest.objects.filter(pk=test.pk, state=LoadState.QUEUED).update(state=LoadState.CANCELLED, ended_at=now)
    record(actor=actor, team=test.job.team, action="load_test.cancel", target=test.job, new={"name": test.job.name})
    return True


def end_silent(*, now: datetime) -> int:
    """Those whose worker is no more, and those that no worker took."""
    running = LoadTest.objects.filter(state=LoadState.RUNNING, seen_at__lte=now - SILENT)
    waiting = LoadTest.objects.filter(state=LoadState.QUEUED, asked_at__lte=now - NEVER_BEGUN)
    ended = {"state": LoadState.FAILED, "ended_at": now}
    return running.update(**ended, why="interrupted") + waiting.update(**ended, why="never_begun")
