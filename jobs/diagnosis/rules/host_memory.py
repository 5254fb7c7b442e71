"""The machine's own memory ran out: the kernel ends the process, which then cannot say so itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import matches, numbers_of

# Said by the program or the kernel: there was no memory.
SAYS_SO = re.compile(
    r"Out of memory: Killed process|oom-kill|oom_reaper|Memory cgroup out of memory|DefaultCPUAllocator: can't allocate memory|DefaultCPUAllocator: not enough memory|"
    r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc|OSError: \[Errno 12\]"
)
# Ended from outside; who did it, they do not know.
KILLED = re.compile(
    r"^\s*Killed\s*$|: line \d+: +\d+ Killed\b|exitcode:? ?:? -9\b|exit code:? -9\b|exits with return code = -9|Signal 9 \(SIGKILL\)|is killed by signal: Killed|died with <Signals\.SIGKILL"
)
SIGKILL = {137, -9}
NEARLY_ALL = 0.93


def look(evidence: Evidence) -> Iterator[Finding]:
    """A process that somebody killed looks the same, but for the memory before it."""
    host = evidence.host
    said = [line for line, _found in matches(evidence.lines, SAYS_SO)]
    killed = [line for line, _found in matches(evidence.lines, KILLED)]
    highest, total = max(host.memory_used_bytes.values, default=None), host.memory_total_bytes
    share = highest / total if highest is not None and total else None
    was_full = share is not None and share >= NEARLY_ALL
    ended = (evidence.exit_code in SIGKILL or bool(killed)) and not evidence.stopped
    if not said and (not ended or (share is not None and not was_full)):
        return
    full = (Reason("host_memory", {"share": round(share or 0.0, 3), "total": total or 0}),) if was_full else ()
    because = full or (() if said else (Reason("killed"),))
    sure = Sure.CERTAIN if said else Sure.LIKELY if was_full else Sure.POSSIBLE
    what = remedies("fewer_workers", "more_ram", "no_offload", "stream_data")
    lines = [*said, *killed]
    yield Finding("host_memory", sure, because, what, numbers_of(lines), since=lines[0].at if lines else None)
