"""The work is done by the CPU while GPUs are paid for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.texts import first

SAYS_SO = re.compile(
    r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|torch\.cuda\.is_available\(\) (?:is|returned|:) ?False|"
    r"CUDA is not available|device: cpu\b|Using device:? cpu\b|no GPU (?:was )?found, (?:using|falling back to) (?:the )?CPU|No GPU detected",
    re.IGNORECASE,
)
QUIET_PERCENT, BUSY_PERCENT, LONG_ENOUGH = 2.0, 50.0, 300.0


def look(evidence: Evidence) -> Iterator[Finding]:
    hit = first(evidence.lines, SAYS_SO)
    if hit is not None:
        because: tuple[Reason, ...] = (Reason("says_cpu"),)
        yield Finding("wrong_device", Sure.CERTAIN, because, _remedies(), (hit[0].number,), since=hit[0].at)
    elif evidence.kind is Kind.TRAINING and (seen := _seen(evidence)) is not None:
        yield Finding("wrong_device", Sure.LIKELY, (seen,), _remedies())


def _seen(evidence: Evidence) -> Reason | None:
    """It makes steps, the CPU works, and no GPU has done anything at all."""
    makes_steps = sum(point.step is not None for _at, point in evidence.points) >= 2
    read = [gpu.utilization_percent for gpu in evidence.gpus if gpu.utilization_percent.seconds >= LONG_ENOUGH]
    cpu = evidence.host.cpu_percent.mean
    if not makes_steps or not read or len(read) < len(evidence.gpus) or cpu is None or cpu < BUSY_PERCENT:
        return None
    highest = max(max(series.values) for series in read)
    return Reason("cpu_works", {"cpu": round(cpu), "gpu": highest}) if highest < QUIET_PERCENT else None


def _remedies() -> tuple[Remedy, ...]:
    return (Remedy("cuda_wheel"), Remedy("container_gpus"), Remedy("visible_devices"))
