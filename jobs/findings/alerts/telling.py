"""Alerts about jobs, brought to what must be: opened, kept up to date, closed when it is over. Idempotent; a constant number of queries, and a few for each change."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django.db.models import Prefetch, Q

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert
from fleet.inventory.models import Instance
from jobs.book.models import OPEN_STATES, Attempt, Job, JobState, Node
from jobs.findings.alerts.judge import TOLD_FOR, JobNow, NodeNow, Stands, Told, judge
from jobs.findings.alerts.words import BEGUN_AGAIN, CAUSES, ENDED, JOB, OLD
from jobs.findings.models import JobFinding
from jobs.metrics.models import JobPoint

logger = logging.getLogger(__name__)
NAMES = tuple(cause.name for cause in CAUSES)
# Steps of a run that say how fast it goes now.
PACE_POINTS = 50


def tell_of_jobs(*, now: datetime) -> int:
    """Returns how many alerts about jobs are open after it. One job that cannot be told of keeps no other from it."""
    alerts = _alerts()
    jobs = _jobs(now, alerts)
    paces = _paces([job for job in jobs if job.is_open and job.deadline_at is not None])
    _clear_removed(alerts, {job.pk for job in jobs}, now)
    told = 0
    for job in jobs:
        try:
            told += _bring(job, judge(now_of(job, paces.get(job.pk)), now), alerts.get(job.pk, {}), now)
        except Exception:
            logger.exception("Nobody could be told of job %d", job.pk)
    return told


def subject_of(job: Job) -> str:
    return f"{JOB}:{job.pk}"


def _alerts() -> dict[int, dict[str, Alert]]:
    """By job and cause: what is open, and what somebody put away."""
    found: dict[int, dict[str, Alert]] = defaultdict(dict)
    rows = Alert.objects.filter(Q(closed_at=None) | Q(dismissed=True), cause__in=NAMES)
    for alert in rows.select_related("team").order_by("pk"):
        found[int(alert.subject.partition(":")[2])][alert.cause] = alert
    return found


def _clear_removed(alerts: Mapping[int, Mapping[str, Alert]], present: Container[int], now: datetime) -> None:
    for alert in (alert for pk, some in alerts.items() if pk not in present for alert in some.values()):
        clear_event(team=alert.team, cause=alert.cause, subject=alert.subject, now=now, why="removed")


def _jobs(now: datetime, alerts: Iterable[int]) -> list[Job]:
    """Those that go on, have ended lately, or have an alert."""
    wanted = Q(state__in=OPEN_STATES) | Q(ended_at__gt=now - TOLD_FOR) | Q(pk__in=list(alerts))
    attempts = Attempt.objects.order_by("-number").prefetch_related(
        Prefetch("nodes", Node.objects.select_related("instance").order_by("rank")),
        Prefetch("findings", JobFinding.objects.order_by("found_at")),
    )
    reruns = Prefetch("reruns", Job.objects.only("pk", "rerun_of"))
    return list(
        Job.objects.filter(wanted).select_related("team").prefetch_related(Prefetch("attempts", attempts), reruns)
    )


def _paces(jobs: Sequence[Job]) -> dict[int, datetime]:
    """When each will be done, by its newest points."""
    found = {}
    for job in jobs:
        rows = JobPoint.objects.filter(attempt__job=job, step__isnull=False, steps__isnull=False).order_by("-at", "-pk")
        points = [
            (at, step or 0, steps or 0) for at, step, steps in rows.values_list("at", "step", "steps")[:PACE_POINTS]
        ]
        if (ready := ready_at(points)) is not None:
            found[job.pk] = ready
    return found


def ready_at(points: Sequence[tuple[datetime, int, int]]) -> datetime | None:
    """`points`: (at, step, steps), the newest first. None where they say too little."""
    if len(points) < 2:
        return None
    (last, step, steps), (first, began, _steps) = points[0], points[-1]
    if step <= began or last <= first or steps < step:
        return None
    return last + (last - first) / (step - began) * (steps - step)


def now_of(job: Job, ready: datetime | None) -> JobNow:
    attempt = next(iter(job.attempts.all()), None)
    nodes = list(attempt.nodes.all()) if attempt else []
    codes = [node.exit_code for node in nodes if node.exit_code]
    return JobNow(
        name=job.name,
        kind=job.kind,
        state=job.state,
        why=job.why,
        since=job.ended_at or job.state_since,
        exit_code=codes[0] if codes else None,
        deadline_at=job.deadline_at,
        ready_at=ready,
        begun_again=bool(job.reruns.all()),
        findings=tuple(_stands(attempt)) if attempt else (),
        nodes=tuple(NodeNow(node.instance.name, node.error, node.reached_at or job.created_at) for node in nodes),
    )


def _stands(attempt: Attempt) -> Iterable[Stands]:
    return (Stands(row.code, row.sure, row.found_at, row.gone_at) for row in attempt.findings.all())


def _bring(job: Job, wanted: Mapping[str, Told], known: Mapping[str, Alert], now: datetime) -> int:
    for cause in set(known) - set(wanted):
        clear_event(team=job.team, cause=cause, subject=subject_of(job), now=now, why=_why_over(job, now))
    for cause, told in wanted.items():
        alert = known.get(cause)
        if alert is None or not _says(alert, told):
            _raise(job, cause, told, now)
    return len(wanted)


def _says(alert: Alert, told: Told) -> bool:
    """There is nothing new to say; what is put away is looked at by the door."""
    return (
        alert.closed_at is None
        and alert.severity == told.severity
        and alert.evidence.get("values") == dict(told.values)
    )


def _why_over(job: Job, now: datetime) -> str:
    if job.reruns.all():
        return BEGUN_AGAIN
    if job.state in OPEN_STATES:
        return "evidence"
    return (
        OLD
        if job.state in {JobState.FAILED, JobState.LOST} and job.ended_at and now - job.ended_at >= TOLD_FOR
        else ENDED
    )


def _raise(job: Job, cause: str, told: Told, now: datetime) -> None:
    attempt = next(iter(job.attempts.all()), None)
    machines = [node.instance for node in attempt.nodes.all()] if attempt else []
    price, currency = price_of(machines)
    raise_event(
        team=job.team,
        cause=cause,
        subject=subject_of(job),
        severity=told.severity,
        now=now,
        instance=machines[0] if machines else None,
        values=told.values,
        signal=JOB,
        since=told.since,
        price_per_hour=price,
        currency=currency,
        costs=told.costs,
    )


def price_of(machines: Sequence[Instance]) -> tuple[Decimal | None, str]:
    """Of all of them an hour; unknown where one's is, or where they are paid in several currencies."""
    prices = [machine.price_per_hour for machine in machines]
    currencies = {machine.currency for machine in machines}
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices) or len(currencies) > 1:
        return None, ""
    return sum(known, Decimal(0)), currencies.pop()
