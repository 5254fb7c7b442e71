"""Requests that take too long or time out: do they wait for their turn, or is the work itself long. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jobs.diagnosis.evidence import Evidence, Kind, Series, ServingEvidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import matches, numbers_of

TIMED_OUT = re.compile(
    r"\b504\b.{0,20}Gateway|\" 504 |Read timed out|ReadTimeout|TimeoutError|timed? ?out waiting|upstream timed out|[Rr]equest .*timed out|Request timed out|\" 499 |499 Client|"
    r"APITimeoutError|DEADLINE_EXCEEDED|Deadline Exceeded"
)
# One client that hangs up is none.
SAID_LEAST = 3
# Half of the time that is taken is waiting.
QUEUES, WAITS = 0.5, 0.3
TAIL = 8.0
PILED = 0.5
LIMIT_SECONDS = 30.0
SLOW_SHARE, FAILED_SHARE = 0.1, 0.2


@dataclass(frozen=True, slots=True)
class Seen:
    """`because`: what the log says; `waits`: share of the readings in which requests waited."""

    serving: ServingEvidence
    because: tuple[Reason, ...]
    lines: tuple[int, ...]
    sure: Sure

    @property
    def waits(self) -> float:
        return self.serving.waiting.share(at_least=1) or 0.0


def look(evidence: Evidence) -> Iterator[Finding]:
    serving = evidence.serving
    if evidence.kind is not Kind.SERVING or serving is None:
        return
    said = [line for line, _found in matches(evidence.lines, TIMED_OUT)]
    if len(said) < SAID_LEAST and not _is_slow(serving):
        return
    because = (Reason("timed_out", {"lines": len(said)}),) if said else ()
    seen = Seen(when_slow(serving), because, numbers_of(said), Sure.CERTAIN if len(said) >= SAID_LEAST else Sure.LIKELY)
    yield _one_at_a_time(seen) or _queueing(seen) or _tail(seen) or _computing(seen)


def _is_slow(serving: ServingEvidence) -> bool:
    limit = serving.timeout_seconds or LIMIT_SECONDS
    share = serving.e2e_p95_seconds.share(at_least=limit)
    failed = serving.failed.share(at_least=1e-9)
    late = share is not None and share >= SLOW_SHARE
    return late or (failed is not None and failed >= FAILED_SHARE and bool(serving.e2e_p95_seconds))


def when_slow(serving: ServingEvidence) -> ServingEvidence:
    """Its readings at the moments when requests took too long: what it did all day says nothing of its rush hour. All, where none did."""
    limit = serving.timeout_seconds or LIMIT_SECONDS
    moments = {at for at, value in serving.e2e_p95_seconds.points if value >= limit}
    if not moments:
        return serving
    names = ("running", "waiting", "ttft_p95_seconds", "tpot_p95_seconds", "e2e_p95_seconds")
    kept: dict[str, Any] = {
        name: Series(tuple(point for point in getattr(serving, name).points if point[0] in moments)) for name in names
    }
    # Without a reading of its own at those moments a figure is worth more than none.
    return replace(serving, **{name: series for name, series in kept.items() if series})


def _one_at_a_time(seen: Seen) -> Finding | None:
    """One computes while the others pile up behind it."""
    running = seen.serving.running.middle
    if running is None or running > 1 or seen.waits < PILED:
        return None
    piled = Reason("one_at_a_time", {"waiting": round(seen.serving.waiting.middle or 0)})
    what = remedies("async_server", "continuous_batching", "another_replica")
    return Finding("synchronous", seen.sure, (*seen.because, piled), what, seen.lines)


def _queueing(seen: Seen) -> Finding | None:
    share = _waiting_share(seen.serving)
    if seen.waits < WAITS or share is None or share < QUEUES:
        return None
    queued = Reason("queues", {"share": round(share, 3), "waiting": round(seen.waits, 3)})
    what = remedies("another_replica", "queue_limit", "more_sequences", "retry_after")
    return Finding("queueing", seen.sure, (*seen.because, queued), what, seen.lines)


def _waiting_share(serving: ServingEvidence) -> float | None:
    """Of a request's time, what it waits: until the first token, else by Little's law, for engines that do not measure that."""
    ttft, whole = serving.ttft_p95_seconds.middle, serving.e2e_p95_seconds.middle
    if ttft is not None and whole:
        return ttft / whole
    waiting, running = serving.waiting.mean, serving.running.mean
    return waiting / (waiting + running) if waiting is not None and running is not None and waiting + running else None


def _tail(seen: Seen) -> Finding | None:
    usual, whole = seen.serving.e2e_p50_seconds.middle, seen.serving.e2e_p95_seconds.middle
    if not usual or not whole or whole / usual < TAIL:
        return None
    tail = Reason("tail", {"p50": round(usual, 2), "p95": round(whole, 2)})
    what = remedies("max_tokens", "chunked_prefill", "split_long")
    return Finding("tail_latency", seen.sure, (*seen.because, tail), what, seen.lines)


def _computing(seen: Seen) -> Finding:
    """Nothing waits: prefill or decoding itself is long."""
    whole, each = seen.serving.e2e_p95_seconds.middle, seen.serving.tpot_p95_seconds.middle
    slow = (Reason("computes", {"whole": round(whole, 2)}),) if whole else ()
    decodes = (Reason("decodes", {"milliseconds": round(1000 * each)}),) if each else ()
    what = remedies("max_tokens", "tensor_parallel", "quantize_weights", "longer_timeout")
    return Finding("computing", seen.sure, (*seen.because, *slow, *decodes), what, seen.lines)
