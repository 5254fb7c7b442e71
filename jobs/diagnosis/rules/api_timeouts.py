"""Requests that take too long or time out: do they wait for their turn, or is the work itself long. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind, ServingEvidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.texts import matches

TIMED_OUT = re.compile(
    r"504 Gateway|Read timed out|TimeoutError|timed? ?out waiting|upstream timed out|Request .* timed out|asyncio\.exceptions\.TimeoutError|499 Client|ReadTimeout"
)
LOADS = re.compile(
    r"Loading (?:model )?(?:checkpoint|weights|safetensors)|Model loading took|Loading checkpoint shards: 100%|load_model\(\) took|from_pretrained"
)
# Of answers to people: whoever asks how a server is gets one all the time.
SERVED = re.compile(
    r'"(?:POST|GET) /(?!v1/models)(?:v1/|generate|predict|api/)\S* HTTP/[\d.]+" 200|Finished request'
    r'|^(?!.*"?GET /(?:health|metrics|ping|ready|v1/models|v2/health)).*200 OK'
)
# Half of the time that is taken is waiting.
QUEUES, WAITS = 0.5, 0.3
TAIL = 8.0
PILED = 0.5
LIMIT_SECONDS = 30.0
# For one token. No resident model takes so long that has nothing else to do.
LOADING_SECONDS = 5.0


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is not Kind.SERVING:
        return
    said = [line.number for line, _found in matches(evidence.lines, TIMED_OUT)]
    if (loads := _loads_each_time(evidence)) is not None:
        yield Finding(
            "loads_each_request", Sure.LIKELY, (loads,), _of(("keep_resident", "engine_server")), tuple(said[:5])
        )
        return
    serving = evidence.serving
    slow = serving is not None and _is_slow(serving)
    if serving is None or not (said or slow):
        return
    yield _why(serving, said)


def _is_slow(serving: ServingEvidence) -> bool:
    limit = serving.timeout_seconds or LIMIT_SECONDS
    share = serving.e2e_p95_seconds.share(at_least=limit)
    failed = serving.failed.share(at_least=1e-9)
    return (share is not None and share >= 0.1) or (
        failed is not None and failed >= 0.2 and bool(serving.e2e_p95_seconds)
    )


def _why(serving: ServingEvidence, said: list[int]) -> Finding:
    sure = Sure.CERTAIN if said else Sure.LIKELY
    because: tuple[Reason, ...] = (Reason("timed_out", {"lines": len(said)}),) if said else ()
    waits = serving.waiting.share(at_least=1)
    whole = serving.e2e_p95_seconds.middle
    running = serving.running.middle
    if running is not None and running <= 1 and waits is not None and waits >= PILED:
        piled = Reason("one_at_a_time", {"waiting": round(serving.waiting.middle or 0)})
        return Finding(
            "synchronous",
            sure,
            (*because, piled),
            _of(("async_server", "continuous_batching", "another_replica")),
            tuple(said[:5]),
        )
    share = _waiting_share(serving)
    if waits is not None and waits >= WAITS and share is not None and share >= QUEUES:
        queued = Reason("queues", {"share": round(share, 3), "waiting": round(waits, 3)})
        return Finding(
            "queueing",
            sure,
            (*because, queued),
            _of(("another_replica", "queue_limit", "more_sequences", "retry_after")),
            tuple(said[:5]),
        )
    usual = serving.e2e_p50_seconds.middle
    if usual and whole and whole / usual >= TAIL:
        tail = Reason("tail", {"p50": round(usual, 2), "p95": round(whole, 2)})
        return Finding(
            "tail_latency",
            sure,
            (*because, tail),
            _of(("max_tokens", "chunked_prefill", "split_long")),
            tuple(said[:5]),
        )
    slow = Reason("computes", {"whole": round(whole, 2)}) if whole else Reason("timed_out", {"lines": len(said)})
    return Finding(
        "computing",
        sure,
        (*because, slow),
        _of(("max_tokens", "tensor_parallel", "quantize_weights", "longer_timeout")),
        tuple(said[:5]),
    )


def _loads_each_time(evidence: Evidence) -> Reason | None:
    """As often as requests were answered, the model was loaded; or a single token took as long as loading does, again and again."""
    loads, served = _loads_between(evidence)
    if served >= 3 and loads >= 0.5 * served:
        return Reason("loads", {"loads": loads, "requests": served})
    again = evidence.serving.short_answers[1:] if evidence.serving else ()
    if again and min(again) >= LOADING_SECONDS:
        return Reason("slow_token", {"seconds": round(min(again), 1), "times": len(again)})
    return None


def _loads_between(evidence: Evidence) -> tuple[int, int]:
    """Loads after the first answer, and the answers after it. What is said of one load in many lines, by each of its processes, is one."""
    loads, served, is_loading = 0, -1, False
    for line in evidence.lines:
        if SERVED.search(line.text):
            served, is_loading = served + 1, False
        elif served >= 0 and not is_loading and LOADS.search(line.text):
            loads, is_loading = loads + 1, True
    return loads, max(0, served)


def _waiting_share(serving: ServingEvidence) -> float | None:
    """Of a request's time, what it waits: until the first token, else by Little's law, for engines that do not measure that."""
    ttft, whole = serving.ttft_p95_seconds.middle, serving.e2e_p95_seconds.middle
    if ttft is not None and whole:
        return ttft / whole
    waiting, running = serving.waiting.mean, serving.running.mean
    return waiting / (waiting + running) if waiting is not None and running is not None and waiting + running else None


def _of(codes: tuple[str, ...]) -> tuple[Remedy, ...]:
    return tuple(Remedy(code) for code in codes)
