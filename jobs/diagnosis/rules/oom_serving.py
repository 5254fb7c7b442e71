"""Serving that runs out of GPU memory, or cannot keep what it is asked to keep at once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind, Line
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.memory_texts import outs_of_memory
from jobs.diagnosis.texts import first, matches
from jobs.progress.numbers import whole

NO_BLOCKS = re.compile(r"No available memory for the cache blocks")
LONGEST = re.compile(
    r"max seq len \((?P<asked>[\d,]+)\) is larger than the maximum number of tokens that can be stored in KV cache \((?P<fits>[\d,]+)\)"
    r"|To serve at least one request with the models?'s max seq len \((?P<asked2>[\d,]+)\)"
)
NOT_FREE = re.compile(r"Free memory on device .*is less than desired GPU memory utilization")
WARMING_UP = re.compile(
    r"out of memory occurred when warming up sampler|capturing CUDA graphs|_dummy_run|profile_run|capture_model"
)
PREEMPTED = re.compile(r"Sequence group .* is preempted|preempted by PreemptionMode|not enough KV cache space")
# A full cache is what it is for; one that is full while requests wait is too small.
FULL, WAITS = 0.95, 0.2


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is not Kind.SERVING:
        return
    found = next(_texts(evidence), None)
    if found is not None or (found := _pressed(evidence)) is not None:
        yield found


def _texts(evidence: Evidence) -> Iterator[Finding]:
    lines = evidence.lines
    if (hit := first(lines, NOT_FREE)) is not None:
        yield _finding("oom_serving_taken", hit[0], (), ("end_other_process", "lower_memory_utilization"))
    if (hit := first(lines, LONGEST)) is not None:
        line, said = hit
        asked, fits = whole(said["asked"] or said["asked2"]), whole(said["fits"])
        values = {name: value for name, value in (("asked", asked), ("fits", fits)) if value is not None}
        remedies = ("shorter_context", "kv_fp8", "higher_memory_utilization", "more_gpus")
        yield _finding("oom_serving_context", line, (Reason("context", values),), remedies)
    if (hit := first(lines, NO_BLOCKS)) is not None:
        remedies = ("higher_memory_utilization", "quantize_weights", "tensor_parallel", "bigger_gpu")
        yield _finding("oom_serving_weights", hit[0], (), remedies)
    for told in outs_of_memory(lines):
        warming = any(WARMING_UP.search(line.text) for line in lines if abs(line.number - told.line.number) < 60)
        remedies = ("lower_memory_utilization", "fewer_sequences", "smaller_prefill", "eager")
        reasons = (
            (Reason("tried", {"bytes": told.tried, "free": told.free or 0, "total": told.total or 0}),)
            if told.tried
            else ()
        )
        yield _finding("oom_serving_warmup" if warming else "oom_serving_running", told.line, reasons, remedies)


def _finding(code: str, line: Line, because: tuple[Reason, ...], remedies: tuple[str, ...]) -> Finding:
    return Finding(code, Sure.CERTAIN, because, tuple(Remedy(one) for one in remedies), (line.number,), since=line.at)


def _pressed(evidence: Evidence) -> Finding | None:
    """No failure yet: requests are thrown out of the cache and computed again, or wait for a place in it."""
    serving = evidence.serving
    preempted = [line.number for line, _found in matches(evidence.lines, PREEMPTED)]
    full = serving.kv_cache_ratio.share(at_least=FULL) if serving else None
    waits = serving.waiting.share(at_least=1) if serving else None
    presses = full is not None and waits is not None and full >= WAITS and waits >= WAITS
    if not preempted and not presses:
        return None
    because = (
        *((Reason("preempted", {"times": len(preempted)}),) if preempted else ()),
        *((Reason("cache_full", {"share": round(full or 0, 3), "waiting": round(waits or 0, 3)}),) if presses else ()),
    )
    remedies = ("kv_fp8", "fewer_sequences", "higher_memory_utilization", "another_replica")
    sure = Sure.CERTAIN if preempted and presses else Sure.LIKELY
    return Finding("kv_cache_small", sure, because, tuple(Remedy(one) for one in remedies), tuple(preempted[:5]))
