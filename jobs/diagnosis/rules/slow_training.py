"""Training that is slower than it has to be, in four steps: do GPUs wait, for whom, and how much slower than was planned. Pure.

1 GPU utilization with its gaps: data loading. 2 CPU, memory and disk that keep it waiting. 3 Waves of utilization over all GPUs together and what the planner
says of communication. 4 Against the planner's own prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, pstdev

from jobs.diagnosis.evidence import Evidence, GpuEvidence, Kind, Series
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.rules.stalled import look as looks_stalled

# Compiling and filling caches is no training yet.
WARM_UP_SECONDS = 120.0
LONG_ENOUGH = 300.0
WAITS_PERCENT = 70.0
IO_PERCENT, DISK_PERCENT, CPU_PERCENT = 10.0, 85.0, 85.0
# A trough is a reading below that of its GPU's own usual.
TROUGH = 0.35
TOGETHER = 0.6
SLOWER = 1.35
COMMUNICATES = 0.2


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is not Kind.TRAINING or next(looks_stalled(evidence), None) is not None:
        return
    read = [series for gpu in evidence.gpus if (series := _steady(gpu, evidence)).seconds >= LONG_ENOUGH]
    busy = fmean(series.mean or 0.0 for series in read) if read else None
    late = _against_plan(evidence)
    if busy is not None and busy < WAITS_PERCENT and len(read) == len(evidence.gpus) and evidence.points:
        yield _waiting(evidence, busy, read, late)
    elif late:
        yield Finding("slower_than_planned", Sure.LIKELY, late, _of(("compare_layout", "check_clocks", "profile")))


def _steady(gpu: GpuEvidence, evidence: Evidence) -> Series:
    began = evidence.started_at
    if evidence.points:
        began = max(began or 0.0, evidence.points[0][0])
    return gpu.utilization_percent if began is None else gpu.utilization_percent.since(began + WARM_UP_SECONDS)


def _waiting(evidence: Evidence, busy: float, read: list[Series], late: tuple[Reason, ...]) -> Finding:
    """For whom they wait: the first that shows itself."""
    says: tuple[Reason, ...] = (Reason("gpus_wait", {"utilization": round(busy)}), *late)
    if disk := _disk(evidence):
        return Finding(
            "data_starved_disk",
            Sure.LIKELY,
            (*says, *disk),
            _of(("local_data", "bigger_files", "more_workers", "faster_disk")),
        )
    if cpu := _cpu(evidence):
        return Finding(
            "data_starved_cpu", Sure.LIKELY, (*says, *cpu), _of(("preprocess_before", "more_cpus", "more_workers"))
        )
    if talk := _communication(evidence, read):
        remedies = ("bigger_batch", "accumulate", "other_parallelism", "faster_link", "overlap")
        return Finding(
            "communication_bound", Sure.LIKELY if len(talk) > 1 else Sure.POSSIBLE, (*says, *talk), _of(remedies)
        )
    if _has_gaps(read):
        return Finding("data_starved", Sure.POSSIBLE, says, _of(("more_workers", "pin_memory", "prefetch", "profile")))
    return Finding("small_work", Sure.POSSIBLE, says, _of(("bigger_batch", "fewer_syncs", "compile", "profile")))


def _disk(evidence: Evidence) -> tuple[Reason, ...]:
    host = evidence.host
    signals = (
        ("iowait", host.iowait_percent.mean, IO_PERCENT),
        ("pressure_io", host.pressure_io_percent.mean, IO_PERCENT),
        ("disk_busy", host.disk_busy_percent.mean, DISK_PERCENT),
    )
    return tuple(
        Reason(code, {"percent": round(value)})
        for code, value, limit in signals
        if value is not None and value >= limit
    )


def _cpu(evidence: Evidence) -> tuple[Reason, ...]:
    cpu = evidence.host.cpu_percent.mean
    return (Reason("cpu_full", {"percent": round(cpu)}),) if cpu is not None and cpu >= CPU_PERCENT else ()


def _communication(evidence: Evidence, read: list[Series]) -> tuple[Reason, ...]:
    """Several GPUs that fall and rise together wait for each other; the planner may have said so."""
    share = evidence.predicted.communication_share
    planned = (
        (Reason("planned_communication", {"share": round(share, 2)}),)
        if share is not None and share >= COMMUNICATES
        else ()
    )
    waves = (Reason("waves", {"gpus": len(read)}),) if len(read) > 1 and _fall_together(read) else ()
    return (*waves, *planned) if waves else ()


def _fall_together(read: list[Series]) -> bool:
    """Where the first one has a trough, most of the others have theirs."""
    lengths = min(len(series.points) for series in read)
    troughs = [[value < TROUGH * max(series.values) for value in series.values[:lengths]] for series in read]
    places = [place for place in range(lengths) if troughs[0][place]]
    if len(places) < 3:
        return False
    return fmean(fmean(one[place] for one in troughs[1:]) for place in places) >= TOGETHER


def _has_gaps(read: list[Series]) -> bool:
    return any(pstdev(series.values) >= 25.0 for series in read)


def _against_plan(evidence: Evidence) -> tuple[Reason, ...]:
    planned, takes = evidence.predicted.seconds_per_step, evidence.steps.middle
    if planned is None or takes is None or takes < SLOWER * planned:
        return ()
    return (
        Reason("slower", {"planned": round(planned, 3), "takes": round(takes, 3), "times": round(takes / planned, 1)}),
    )


def _of(codes: tuple[str, ...]) -> tuple[Remedy, ...]:
    return tuple(Remedy(code) for code in codes)
