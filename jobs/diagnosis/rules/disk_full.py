"""No place left on the disk: checkpoints, caches and logs end in the middle. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.texts import matches

FULL = re.compile(
    r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]|PytorchStreamWriter failed writing file"
)
# Another place fills: shared memory, which workers hand batches through.
SHARED = re.compile(r"\bshm\b|shared memory", re.IGNORECASE)
NEARLY = 0.98


def look(evidence: Evidence) -> Iterator[Finding]:
    said = [line for line, _found in matches(evidence.lines, FULL)]
    used = evidence.host.disk_used_ratio.last
    of_memory = [line for line in said if SHARED.search(line.text)]
    if of_memory:
        yield Finding(
            "shared_memory_full",
            Sure.CERTAIN,
            (),
            (Remedy("shm_size"), Remedy("fewer_workers")),
            tuple(line.number for line in of_memory[:5]),
        )
    elif said or (used is not None and used >= NEARLY):
        because = (Reason("disk_used", {"share": round(used, 3)}),) if used is not None else ()
        remedies = (Remedy("fewer_checkpoints"), Remedy("clear_caches"), Remedy("bigger_disk"))
        yield Finding(
            "disk_full",
            Sure.CERTAIN if said else Sure.LIKELY,
            because,
            remedies,
            tuple(line.number for line in said[:5]),
        )
