"""Carries a load test out. Its event loop has a thread of its own; this one writes every second how far it is, and looks whether it is to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from fleet.guard import Guard
from fleet.telemetry.models import GpuLatest
from jobs.book.models import Attempt, JobState
from jobs.book.serving import Engine, Serving
from jobs.loadtest.advice import Watched, advise
from jobs.loadtest.knee import find_knee
from jobs.loadtest.models import LoadStage, LoadState, LoadTest
from jobs.loadtest.plan import LoadPlan
from jobs.loadtest.reach import LoadFailed, StageDone, load
from jobs.loadtest.rows import figures_of_row, plan_of
from jobs.loadtest.stage import Course
from jobs.loadtest.target import question_of, replicas_of
from jobs.loadtest.thread import Ended, Loading

EVERY_SECONDS = 1.0
# Beyond the time that the plan itself may take: signing in, the first request.
MORE_SECONDS = 60.0
# Of a card whose memory the server holds; others on its machine are not its own.
HELD_SHARE = 0.5


def run_load_test(*, test_id: int) -> bool:
    """False: somebody else has it, or it was called off."""
    now = timezone.now()
    begun = LoadTest.objects.filter(pk=test_id, state=LoadState.QUEUED, cancel_asked_at=None)
    if not begun.update(state=LoadState.RUNNING, started_at=now, seen_at=now):
        return False
    test = LoadTest.objects.select_related("job", "attempt").get(pk=test_id)
    plan = plan_of(test)
    try:
        replicas, question = replicas_of(test.attempt), question_of(test, plan)
    except LoadFailed as failure:
        return end(test, plan, Ended(failure.code, failure.detail), timezone.now())
    course = Course(plan)
    guard = Guard.of(settings.ALLOWED_NETWORKS)
    with Loading(
        lambda tell: load(course, replicas, question, guard=guard, tell=tell),
        most_seconds=plan.whole_seconds + MORE_SECONDS,
    ) as loading:
        ended = follow(test, course, loading)
    return end(test, plan, ended, timezone.now())


def follow(test: LoadTest, course: Course, loading: Loading) -> Ended:
    while True:
        ended = loading.wait(EVERY_SECONDS)
        while not loading.told.empty():
            keep_stage(test, loading.told.get(), timezone.now())
        keep_progress(test, course, timezone.now())
        if ended is not None:
            return ended
        if why := to_end(test):
            loading.cancel()
            told = loading.wait(MORE_SECONDS)
            return replace(told, why=why) if told else Ended(why)


def to_end(test: LoadTest) -> str:
    """Why it goes on no longer; "" = it does."""
    test.refresh_from_db(fields=["cancel_asked_at", "state"])
    if test.cancel_asked_at is not None:
        return "cancelled"
    if test.state != LoadState.RUNNING:
        return "interrupted"
    return "" if Attempt.objects.filter(pk=test.attempt_id, state=JobState.RUNNING).exists() else "job_ended"


def keep_progress(test: LoadTest, course: Course, at: datetime) -> None:
    progress = {
        "stage": course.stage,
        "under_way": course.under_way,
        "answered": course.answered,
        "failed": course.failed,
        "begun": course.begun,
    }
    LoadTest.objects.filter(pk=test.pk, state=LoadState.RUNNING).update(progress=progress, seen_at=at)


def keep_stage(test: LoadTest, told: StageDone, at: datetime) -> None:
    peaks = asdict(told.peaks) | {"gpu_memory_share": gpu_memory_share(test.attempt)}
    LoadStage.objects.create(
        test=test, number=test.stages.count(), ended_at=at, figures=asdict(told.figures), peaks=peaks
    )


def gpu_memory_share(attempt: Attempt) -> float | None:
    """Of the fullest card that the server holds, as the agents of its machines said last."""
    machines = attempt.nodes.values_list("instance_id", flat=True)
    rows = GpuLatest.objects.filter(gpu__instance__in=machines)
    pairs = rows.values_list("memory_used_bytes", "memory_total_bytes")
    shares = [used / total for used, total in pairs if used is not None and total]
    return max((share for share in shares if share >= HELD_SHARE), default=None)


def end(test: LoadTest, plan: LoadPlan, ended: Ended, at: datetime) -> bool:
    """What was found up to its end is kept, whatever ended it."""
    rows = list(test.stages.all())
    stages = [figures_of_row(row) for row in rows]
    knee = find_knee(plan, stages)
    serving = Serving.of(test.job.serving)
    found = advise(
        plan,
        stages,
        knee,
        watched=Watched(**rows[knee.stage].peaks) if knee.stage is not None else Watched(),
        engine=serving.engine if serving else Engine.OTHER.value,
        command=test.job.command,
        replicas=test.replicas,
    )
    LoadTest.objects.filter(pk=test.pk, state=LoadState.RUNNING).update(
        state=state_of(ended, stages),
        why=ended.why,
        detail=ended.detail,
        ended_at=at,
        knee_stage=knee.stage,
        knee_past=knee.past,
        advice=[asdict(one) for one in found],
    )
    return True


def state_of(ended: Ended, stages: Sequence[object]) -> LoadState:
    if ended.why == "cancelled":
        return LoadState.CANCELLED
    # What ran out of time has still seen what it has seen.
    return LoadState.DONE if not ended.why or (ended.why == "time" and stages) else LoadState.FAILED
