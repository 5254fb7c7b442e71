"""No place left on the disk, or in shared memory: checkpoints, caches and batches end in the middle. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.texts import matches, numbers_of

FULL = re.compile(
    r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]|PytorchStreamWriter failed writing file|os error 28\b|ENOSPC"
)
# Another place fills: shared memory, which workers hand batches through and NCCL its rings.
SHARED = re.compile(
    r"\bshm\b|shared memory|shm_open|\(Bus error\)|Unexpected bus error encountered in worker", re.IGNORECASE
)
IN_MEMORY = re.compile(
    r"Unexpected bus error encountered in worker|insufficient shared memory|killed by signal: Bus error|unable to (?:open|mmap|write) .*shared memory|"
    r"unable to allocate shared memory|creating shared memory segment (?:/dev/shm/)?nccl|error while creating shared memory",
    re.IGNORECASE,
)
NEARLY = 0.98


def look(evidence: Evidence) -> Iterator[Finding]:
    said = [line for line, _found in matches(evidence.lines, FULL)]
    in_memory = [line for line in evidence.lines if IN_MEMORY.search(line.text)]
    in_memory += [line for line in said if SHARED.search(line.text) and line not in in_memory]
    if in_memory:
        what = remedies("shm_size", "fewer_workers")
        yield Finding("shared_memory_full", Sure.CERTAIN, (), what, numbers_of(in_memory), since=in_memory[0].at)
        return
    used = evidence.host.disk_used_ratio.last
    if said or (used is not None and used >= NEARLY):
        because = (Reason("disk_used", {"share": round(used, 3)}),) if used is not None else ()
        what = remedies("fewer_checkpoints", "clear_caches", "bigger_disk")
        yield Finding("disk_full", Sure.CERTAIN if said else Sure.LIKELY, because, what, numbers_of(said))
