"""The work is done by the CPU while GPUs are paid for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure, remedies
from jobs.diagnosis.texts import first

# It ends with that.
FAILS = re.compile(
    r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|no CUDA-capable device is detected"
)
# It goes on with that. Settings that name a CPU for a part ("offload device: cpu") are none.
GOES_ON = re.compile(
    r"torch\.cuda\.is_available\(\) (?:is|returned|[:=]+) ?False|CUDA is not available|CUDA available: False|CUDA not available|"
    r"(?:rank|Rank): ?-?\d+,? device: cpu\b|(?:^|[^\w.\-] ?|\b(?:[Uu]sing|on) )[Dd]evice(?: is)?:? (?:= ?)?[\"']?cpu\b(?!_)|"
    r"[Uu]sing (?:the )?cpu (?:device|backend)|no GPU (?:was )?found, (?:using|falling back to) (?:the )?CPU|No GPU(?:/TPU)? (?:found|detected)|"
    r"GPU available: (?:False|True.*), used: False|[Cc]ould not find cuda drivers on your machine, GPU will not be used",
    re.IGNORECASE,
)
PART = re.compile(r"offload|pin_memory|optimizer|map_location|checkpoint", re.IGNORECASE)
QUIET_PERCENT, BUSY_PERCENT, LONG_ENOUGH = 2.0, 50.0, 300.0


def look(evidence: Evidence) -> Iterator[Finding]:
    whole = tuple(line for line in evidence.lines if not PART.search(line.text))
    hit = first(evidence.lines, FAILS) or (first(whole, GOES_ON) if evidence.gpus else None)
    if hit is not None and not _gpus_work(evidence):
        because: tuple[Reason, ...] = (Reason("says_cpu"),)
        yield Finding("wrong_device", Sure.CERTAIN, because, _remedies(), (hit[0].number,), since=hit[0].at)
    elif evidence.kind is Kind.TRAINING and (seen := _seen(evidence)) is not None:
        yield Finding("wrong_device", Sure.LIKELY, (seen,), _remedies())


def _gpus_work(evidence: Evidence) -> bool:
    """What a line says of one process is not so of the run."""
    return any(gpu.utilization_percent and max(gpu.utilization_percent.values) >= BUSY_PERCENT for gpu in evidence.gpus)


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
    return remedies("cuda_wheel", "container_gpus", "visible_devices")
