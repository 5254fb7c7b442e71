"""What people are told of a job as it is now: by cause, how bad it is and why. Pure.

A finding of the diagnosis is told while its job runs. What has gone wrong with a job as a whole is told for a day, or until it was begun again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

URGENT, WARNING, NOTE = "urgent", "warning", "note"
# For how long the end of a job is news.
TOLD_FOR = timedelta(hours=24)
# A finding that comes and goes with the readings of a minute is told as one.
STAYS = timedelta(minutes=5)
# What costs time and breaks nothing has to last before anybody is told.
SLOW_FOR = timedelta(minutes=15)
UNREACHED_FOR = timedelta(minutes=10)
DEADLINE_AHEAD = timedelta(hours=1)

FAILED, LOST, DEADLINE, UNREACHABLE = "job.failed", "job.lost", "job.deadline", "job.unreachable"
STALLED, DIVERGED, DEVICE, SLOW = "job.stalled", "job.diverged", "job.device", "job.slow"
LEAK, LATE, MEMORY, DISK = "job.leak", "job.late_answers", "job.memory", "job.disk"

# What each finding is told as, and how bad it is when it is certain or likely, and when it is only possible ("": then nobody is told).
# What the alerts of machines tell already (faults of a GPU, heat, neighbours) is not told twice.
TOLD: Mapping[str, tuple[str, str, str]] = {
    "stalled": (STALLED, URGENT, WARNING),
    "no_steps": (STALLED, WARNING, NOTE),
    "loss_nan": (DIVERGED, URGENT, WARNING),
    "loss_diverged": (DIVERGED, WARNING, NOTE),
    "wrong_device": (DEVICE, WARNING, NOTE),
    "memory_leak": (LEAK, WARNING, NOTE),
    "loads_each_request": (LATE, WARNING, NOTE),
    "synchronous": (LATE, WARNING, NOTE),
    "queueing": (LATE, WARNING, NOTE),
    "tail_latency": (LATE, NOTE, NOTE),
    "computing": (LATE, NOTE, NOTE),
    "kv_cache_small": (LATE, NOTE, ""),
    "oom_serving_running": (MEMORY, WARNING, NOTE),
    "oom_serving_utilization": (MEMORY, WARNING, NOTE),
    "oom_serving_concurrency": (MEMORY, WARNING, NOTE),
    "oom_serving_prefill": (MEMORY, WARNING, NOTE),
    "disk_full": (DISK, WARNING, ""),
    "shared_memory_full": (DISK, WARNING, ""),
    "data_starved": (SLOW, NOTE, ""),
    "data_starved_disk": (SLOW, NOTE, ""),
    "data_starved_memory": (SLOW, NOTE, ""),
    "data_starved_cpu": (SLOW, NOTE, ""),
    "communication_bound": (SLOW, NOTE, ""),
    "slower_than_planned": (SLOW, NOTE, ""),
    "small_work": (SLOW, NOTE, ""),
}
RANKS = {URGENT: 3, WARNING: 2, NOTE: 1}
# Somebody has to do something on our side before the job goes on.
WAITS_FOR_SOMEBODY = frozenset({"host_key_new", "no_key_fits", "no_address", "refused_address"})


@dataclass(frozen=True, slots=True)
class Stands:
    """A finding of the newest attempt. `gone_at`: when it was not found any more."""

    code: str
    sure: str
    found_at: datetime
    gone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeNow:
    """`error`: why its machine is not reached, "" = it is. `heard_at`: when it last was."""

    machine: str
    error: str
    heard_at: datetime


@dataclass(frozen=True, slots=True)
class JobNow:
    """`ready_at`: when it will be done at this pace, where its steps say so. `begun_again`: another job runs in its place."""

    name: str
    kind: str
    state: str
    why: str
    since: datetime
    exit_code: int | None = None
    deadline_at: datetime | None = None
    ready_at: datetime | None = None
    begun_again: bool = False
    findings: tuple[Stands, ...] = ()
    nodes: tuple[NodeNow, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """`values`: JSON-ready, what the words are made of; the same facts give the same values. `costs`: money runs while it lasts."""

    severity: str
    values: Mapping[str, Any]
    since: datetime
    costs: bool = True


@dataclass(slots=True)
class _Worst:
    found: dict[str, Told] = field(default_factory=dict)

    def take(self, cause: str, told: Told) -> None:
        known = self.found.get(cause)
        if known is None or RANKS[told.severity] > RANKS[known.severity]:
            self.found[cause] = told


def judge(job: JobNow, now: datetime) -> dict[str, Told]:
    """By cause, the worst of each. Nothing where all is well."""
    worst = _Worst()
    for cause, told in (*_of_end(job, now), *_of_run(job, now)):
        worst.take(cause, told)
    return worst.found


def _of_end(job: JobNow, now: datetime) -> Iterator[tuple[str, Told]]:
    if job.begun_again or now - job.since >= TOLD_FOR:
        return
    severity = URGENT if job.kind == "serving" else WARNING
    if job.state == "failed":
        code = {} if job.exit_code is None else {"code": job.exit_code}
        values = {"what": "failed", "why": job.why, "finding": _surest(job), **code}
        yield FAILED, Told(severity, _values(job, values), job.since, costs=False)
    elif job.state == "lost":
        yield LOST, Told(severity, _values(job, {"what": "lost", "why": job.why}), job.since, costs=False)
    elif job.state == "stopped" and job.why == "deadline":
        yield DEADLINE, Told(WARNING, _values(job, {"what": "deadline_over"}), job.since, costs=False)


def _surest(job: JobNow) -> str:
    """What the diagnosis says of its end; "" where it says nothing sure."""
    sure = [one for one in job.findings if one.gone_at is None and one.sure != "possible"]
    return min(sure, key=lambda one: (one.sure != "certain", one.found_at, one.code)).code if sure else ""


def _of_run(job: JobNow, now: datetime) -> Iterator[tuple[str, Told]]:
    if job.state not in {"queued", "preparing", "running", "stopping"}:
        return
    yield from _of_deadline(job, now)
    yield from _of_nodes(job, now)
    if job.state == "running":
        yield from _of_findings(job, now)


def _of_deadline(job: JobNow, now: datetime) -> Iterator[tuple[str, Told]]:
    """It is stopped when its deadline comes: said while there is still time to move it."""
    ends = job.deadline_at
    if ends is None or ends <= now:
        return
    at = {"deadline": ends.isoformat()}
    if job.ready_at is not None:
        if job.ready_at > ends:
            yield DEADLINE, Told(WARNING, _values(job, {"what": "deadline_missed", **at}), now)
    elif ends - now <= DEADLINE_AHEAD:
        yield DEADLINE, Told(NOTE, _values(job, {"what": "deadline_ahead", **at}), now)


def _of_nodes(job: JobNow, now: datetime) -> Iterator[tuple[str, Told]]:
    for node in job.nodes:
        if not node.error:
            continue
        values = _values(job, {"what": "unreachable", "error": node.error, "machine": node.machine})
        if node.error == "host_key_changed":
            yield UNREACHABLE, Told(URGENT, values, node.heard_at)
        elif node.error in WAITS_FOR_SOMEBODY or now - node.heard_at >= UNREACHED_FOR:
            yield UNREACHABLE, Told(WARNING, values, node.heard_at)


def _of_findings(job: JobNow, now: datetime) -> Iterator[tuple[str, Told]]:
    for one in job.findings:
        if one.code not in TOLD or (one.gone_at is not None and now - one.gone_at >= STAYS):
            continue
        cause, sure, unsure = TOLD[one.code]
        severity = unsure if one.sure == "possible" else sure
        if severity and (cause != SLOW or now - one.found_at >= SLOW_FOR):
            yield cause, Told(severity, _values(job, {"what": "finding", "finding": one.code}), one.found_at)


def _values(job: JobNow, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"job": job.name, **more}
