"""Which targets are read, by whom, and when again.

due ──claim──► being read ──good──► next in one interval
                   ├───────failed─► next after a back-off
                   └─ worker died ► the claim runs out, and the target is due again
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import SshAddress
from fleet.inventory.ssh_keys import private_keys
from fleet.providers.base import InstanceState
from fleet.telemetry.latest import limits_for
from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.scrape.through_ssh import SshRoute

# One task reads so many; more targets are more shards, which any worker takes.
SHARD_TARGETS = 250
SHARDS_AT_ONCE = 40
CLAIM = timedelta(seconds=120)
MAX_BACKOFF = timedelta(minutes=5)
JITTER = 0.1
# A target that was not read for so many of its intervals feeds its machine no more: another one may.
INTERVALS_UNTIL_SILENT = 3
_OFF = (InstanceState.STOPPED, InstanceState.TERMINATED)


@dataclass(frozen=True, slots=True)
class Job:
    """One target as the shard that reads it needs it. `takes_…`: whether what it gives of that part is stored."""

    target_id: int
    instance_id: int
    url: str
    kind: str
    token: str = field(repr=False)
    interval_seconds: int
    failures: int
    memory: dict[str, Any]
    yields_to: str = ""
    takes_gpus: bool = True
    takes_host: bool = True
    ssh: SshRoute | None = None
    # Why it cannot be read at all, a key of scrape.words.FAILURES.
    problem: str = ""


def claim_due(*, now: datetime) -> list[uuid.UUID]:
    """Claims what is due, a shard at a time: first what was read the last time, and what failed in shards of its own, behind it.

    A machine that is off is not asked: its address may be somebody else's by now.
    """
    due = ScrapeTarget.objects.filter(enabled=True, next_scrape_at__lte=now, instance__gone_at=None)
    due = due.exclude(instance__state__in=_OFF).order_by("next_scrape_at", "pk")
    claims: list[uuid.UUID] = []
    for part in (due.filter(failures=0), due.filter(failures__gt=0)):
        while len(claims) < SHARDS_AT_ONCE and (ids := list(part.values_list("pk", flat=True)[:SHARD_TARGETS])):
            claim = claim_targets(ids, now=now, due=Q(next_scrape_at__lte=now))
            claims += [claim] if claim else []
    return claims


def claim_targets(ids: list[int], *, now: datetime, due: Q) -> uuid.UUID | None:
    """Compare and set: of two that want a target one gets it. None: others got all of them."""
    claim = uuid.uuid4()
    free = ScrapeTarget.objects.filter(due, pk__in=ids, enabled=True)
    return claim if free.update(claim=claim, next_scrape_at=now + CLAIM) else None


def jobs_of(claim: uuid.UUID, *, now: datetime) -> list[Job]:
    """Four queries, however many targets; two more where some are reached through SSH."""
    targets = list(ScrapeTarget.objects.filter(claim=claim, enabled=True).order_by("pk"))
    instance_ids = {target.instance_id for target in targets}
    agents = reporting(instance_ids, now=now)
    siblings: dict[int, list[ScrapeTarget]] = {}
    for other in ScrapeTarget.objects.filter(instance_id__in=instance_ids, enabled=True).defer("memory", "token"):
        siblings.setdefault(other.instance_id, []).append(other)
    jobs = [_job(target, target.instance_id in agents, siblings[target.instance_id], now) for target in targets]
    return add_routes(jobs, targets)


def add_routes(jobs: list[Job], targets: list[ScrapeTarget]) -> list[Job]:
    """The way through SSH, for those that are reached by it: the team's key, and the host key that somebody confirmed."""
    distant = [target for target in targets if target.ssh]
    if not distant:
        return jobs
    teams = dict(Instance.objects.filter(scrape_targets__in=distant).values_list("id", "team_id"))
    keys, pinned = private_keys(teams.values()), pinned_keys(teams)
    return [
        _with_route(job, target, keys.get(teams[target.instance_id], ""), pinned) if target.ssh else job
        for job, target in zip(jobs, targets, strict=True)
    ]


def pinned_keys(instance_ids: Iterable[int]) -> dict[tuple[int, str, int], str]:
    rows = SshHost.objects.filter(instance_id__in=list(instance_ids)).exclude(pinned="")
    return {(row.instance_id, row.host, row.port): row.pinned for row in rows}


def _with_route(job: Job, target: ScrapeTarget, private_key: str, pinned: Mapping[tuple[int, str, int], str]) -> Job:
    if not private_key:
        return replace(job, problem=job.problem or "ssh_no_key")
    address = SshAddress.parse(target.ssh)
    known = pinned.get((target.instance_id, address.host, address.port), "")
    return replace(job, ssh=SshRoute(address, private_key, known))


def reporting(instance_ids: set[int], *, now: datetime) -> set[int]:
    """The machines whose own agent reports: it knows more and sees it sooner, so that exporters stand by."""
    agents = Agent.objects.filter(instance_id__in=instance_ids, revoked_at=None, paused=False, batch_at__isnull=False)
    return {agent.instance_id for agent in agents if now - agent.batch_at <= limits_for(agent).stale_after}  # type: ignore[operator]


def feeder_of(part: str, siblings: list[ScrapeTarget], *, now: datetime) -> int | None:
    """The target whose `part` (gives_gpus, gives_host) is stored: the first of those that give it and are read."""
    alive = [other for other in siblings if getattr(other, part) and is_read(other, now=now)]
    return min((other.pk for other in alive), default=None)


def is_read(target: ScrapeTarget, *, now: datetime) -> bool:
    silent_after = timedelta(seconds=INTERVALS_UNTIL_SILENT * target.interval_seconds)
    return target.last_ok_at is not None and now - target.last_ok_at <= silent_after


def next_scrape_at(*, interval_seconds: int, failures: int, now: datetime) -> datetime:
    """Doubles with every failure up to MAX_BACKOFF. Jitter to the later side: targets added together must not stay together."""
    interval = timedelta(seconds=interval_seconds)
    delay = min(interval * 2 ** min(failures, 10), max(MAX_BACKOFF, interval)) if failures else interval
    share = JITTER if failures else JITTER / 2
    return now + delay * random.uniform(1, 1 + share)  # noqa: S311 - not for secrets


def _job(target: ScrapeTarget, agent_reports: bool, siblings: list[ScrapeTarget], now: datetime) -> Job:
    token, problem = "", ""
    try:
        token = open_sealed(target.token).get("token", "")
    except CredentialError:
        problem = "sealed"
    return Job(
        target_id=target.pk,
        instance_id=target.instance_id,
        url=target.url,
        kind=target.kind,
        token=token,
        interval_seconds=target.interval_seconds,
        failures=target.failures,
        memory=target.memory,
        yields_to="agent" if agent_reports else "",
        takes_gpus=feeder_of("gives_gpus", siblings, now=now) in (None, target.pk),
        takes_host=feeder_of("gives_host", siblings, now=now) in (None, target.pk),
        problem=problem,
    )
