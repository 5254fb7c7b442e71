"""The machine's own memory ran out: the kernel ends the process, which then cannot say so itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.texts import matches

KILLED = re.compile(
    r"\bKilled\b|Out of memory: Killed process|oom-kill|exitcode: -9|exit code -9|DefaultCPUAllocator: can't allocate memory|MemoryError|Signal 9 \(SIGKILL\)"
)
SIGKILL = {137, -9}
NEARLY_ALL = 0.93


def look(evidence: Evidence) -> Iterator[Finding]:
    """A process that somebody killed looks the same, but for the memory before it."""
    host = evidence.host
    said = [line for line, _found in matches(evidence.lines, KILLED)]
    highest = max(host.memory_used_bytes.values, default=None)
    total = host.memory_total_bytes
    share = highest / total if highest is not None and total else None
    was_full = share is not None and share >= NEARLY_ALL
    killed = evidence.exit_code in SIGKILL or bool(said)
    if not killed or (share is not None and not was_full):
        return
    because = (
        (Reason("host_memory", {"share": round(share, 3), "total": total or 0}),)
        if was_full and share is not None
        else (Reason("killed"),)
    )
    remedies = ("fewer_workers", "more_ram", "no_offload", "stream_data")
    yield Finding(
        "host_memory",
        Sure.LIKELY if was_full else Sure.POSSIBLE,
        because,
        tuple(Remedy(code) for code in remedies),
        tuple(line.number for line in said[:5]),
    )
