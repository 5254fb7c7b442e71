"""How a job's server stands: what its page says of it, from its last look, its newest readings, and the day before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, Max, Q, Sum

from fleet.telemetry.serving.models import ServingLatest, ServingSample
from jobs.book.models import Attempt
from jobs.book.serving import Serving
from jobs.serving.endpoint import endpoint_of, server_of
from jobs.serving.models import Probe, Server

# What happened so lately is now.
LATELY, DAY = timedelta(minutes=10), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server, how it was ordered, and the endpoint that its readings are of; None = none was read."""

    server: Server
    serving: Serving
    endpoint: ServingLatest | None

    @property
    def load_seconds(self) -> float | None:
        """From the start of the command until its model answered."""
        started, ready = self.server.node.started_at, self.server.ready_at
        return (ready - started).total_seconds() if started and ready else None


@dataclass(frozen=True, slots=True)
class Standing:
    """Figures of now, and `…_most` of the last day. None = not known. Seconds, bytes, ratios 0-1, counts and rates a second."""

    facts: ServerFacts
    requests_per_second: float | None
    finished: int | None
    failed: int | None
    generated_tokens: int | None
    ttft_seconds_p95: float | None
    tpot_seconds_p95: float | None
    e2e_seconds_p95: float | None
    waiting_most: float | None
    kv_cache_most: float | None
    memory_bytes: int | None
    memory_most: int | None
    looks: int
    looks_up: int

    @property
    def up_ratio(self) -> float | None:
        """Of the looks that reached its machine."""
        return self.looks_up / self.looks if self.looks else None

    @property
    def failed_ratio(self) -> float | None:
        return self.failed / self.finished if self.finished and self.failed is not None else None


def facts_of(attempt: Attempt) -> ServerFacts | None:
    """None: the job serves nothing, or its command has not begun."""
    serving, server = Serving.of(attempt.job.serving), server_of(attempt)
    if serving is None or server is None:
        return None
    return ServerFacts(server, serving, endpoint_of(server, serving, attempt))


def standing_of(attempt: Attempt, *, now: datetime) -> Standing | None:
    """None as facts_of."""
    if (facts := facts_of(attempt)) is None:
        return None
    until = attempt.ended_at or now
    told = _told(facts.endpoint, until, attempt) if facts.endpoint else {}
    seen = _seen(facts.server, until)
    return Standing(
        facts=facts,
        requests_per_second=_rate(told),
        finished=told.get("finished"),
        failed=told.get("failed"),
        generated_tokens=told.get("generated"),
        ttft_seconds_p95=told.get("ttft"),
        tpot_seconds_p95=told.get("tpot"),
        e2e_seconds_p95=told.get("e2e"),
        waiting_most=told.get("waiting"),
        kv_cache_most=told.get("cache"),
        memory_bytes=seen["memory"],
        memory_most=seen["memory_most"],
        looks=seen["looks"],
        looks_up=seen["up"],
    )


def _told(endpoint: ServingLatest, until: datetime, attempt: Attempt) -> dict[str, Any]:
    since = max(until - DAY, attempt.started_at or attempt.created_at)
    lately = Q(sampled_at__gt=until - LATELY)
    rows = ServingSample.objects.filter(endpoint=endpoint, sampled_at__gte=since, sampled_at__lte=until)
    return rows.aggregate(
        finished=Sum("requests_finished"),
        failed=Sum("requests_failed"),
        generated=Sum("generation_tokens"),
        waiting=Max("requests_waiting"),
        cache=Max("kv_cache_ratio"),
        ttft=Max("ttft_seconds_p95", filter=lately),
        tpot=Max("tpot_seconds_p95", filter=lately),
        e2e=Max("e2e_seconds_p95", filter=lately),
        lately_finished=Sum("requests_finished", filter=lately),
        lately_seconds=Sum("interval_seconds", filter=lately),
    )


def _rate(told: dict[str, Any]) -> float | None:
    finished, seconds = told.get("lately_finished"), told.get("lately_seconds")
    return finished / seconds if finished is not None and seconds else None


def _seen(server: Server, until: datetime) -> dict[str, Any]:
    """Memory now is the mean of the last looks: it moves with every request."""
    rows = Probe.objects.filter(server=server, at__gt=until - DAY, at__lte=until)
    seen = rows.aggregate(
        memory=Avg("memory_bytes", filter=Q(at__gt=until - timedelta(minutes=1))),
        memory_most=Max("memory_bytes"),
        looks=Count("pk", filter=Q(is_up__isnull=False)),
        up=Count("pk", filter=Q(is_up=True)),
    )
    return seen | {"memory": round(seen["memory"]) if seen["memory"] is not None else None}
