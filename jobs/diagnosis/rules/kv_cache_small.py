"""A server whose KV cache is too small for its load: requests are thrown out and computed again, or wait for a place in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Sure
from jobs.diagnosis.savings import ordered
from jobs.diagnosis.texts import matches, numbers_of

PREEMPTED = re.compile(
    r"Sequence group .* is preempted|preempted by PreemptionMode|not enough KV cache space|KV cache pool is full\. Retract requests|Decode out of memory happened\. #retracted"
    r"|Preempting request|Preempted request \S+"
)
# One or two in a burst cost little.
OFTEN = 3
# A full cache is what it is for; one that is full while requests wait is too small.
FULL, WAITS = 0.95, 0.2


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is not Kind.SERVING:
        return
    serving = evidence.serving
    preempted = [line for line, _found in matches(evidence.lines, PREEMPTED)]
    full = serving.kv_cache_ratio.share(at_least=FULL) if serving else None
    waits = serving.waiting.share(at_least=1) if serving else None
    presses = full is not None and waits is not None and full >= WAITS and waits >= WAITS
    if len(preempted) < OFTEN and not presses:
        return
    because = (
        *((Reason("preempted", {"times": len(preempted)}),) if preempted else ()),
        *((Reason("cache_full", {"share": round(full or 0, 3), "waiting": round(waits or 0, 3)}),) if presses else ()),
    )
    remedies = ordered(("kv_fp8", "fewer_sequences", "higher_memory_utilization", "another_replica"), evidence)
    sure = Sure.CERTAIN if preempted and presses else Sure.LIKELY
    yield Finding("kv_cache_small", sure, because, remedies, numbers_of(preempted))
