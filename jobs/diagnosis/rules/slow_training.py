"""Training that is slower than it has to be, in four steps: do GPUs wait, for whom, and how much slower than was planned. Pure.

1 GPU utilization with its gaps: data loading and its workers. 2 CPU, memory and disk that keep it waiting. 3 Communication: waves of utilization over all GPUs
together, a link at its limit, a slow path of NCCL. 4 What the log says itself of where the time goes, and the planner's prediction. Each reason names its step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, pstdev

from jobs.diagnosis.evidence import Evidence, GpuEvidence, HostEvidence, Kind, Series
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies
from jobs.diagnosis.rules.stalled import look as looks_stalled
from jobs.diagnosis.texts import matches
from jobs.diagnosis.time_split import Split, time_split

# Compiling and filling caches is no training yet.
WARM_UP_SECONDS = 120.0
LONG_ENOUGH = 300.0
WAITS_PERCENT = 70.0
IO_PERCENT, DISK_PERCENT, CPU_PERCENT = 10.0, 85.0, 85.0
MEMORY_PERCENT, MEMORY_SHARE = 10.0, 0.96
# A trough is a reading below that of its GPU's own usual.
TROUGH = 0.35
TOGETHER = 0.6
GAPS_PERCENT = 25.0
SLOWER, AS_PLANNED = 1.35, 1.1
COMMUNICATES = 0.2
# Of what the link was measured to carry.
LINK_FULL = 0.7
SPLIT_DATA, SPLIT_TALK = 0.25, 0.25
# NCCL kernels count as work: without this it looks busy.
SLOW_PATH = re.compile(r"NCCL INFO (?:Using network Socket|NET/Socket : Using)|NCCL INFO .*via NET/Socket/")
FAST_PATH = re.compile(r"NCCL INFO .*(?:via P2P|NET/IB|NVLS|via NET/IB)")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the four steps are judged by. `busy`: mean utilization of all GPUs since it trains, None = not read of every one."""

    evidence: Evidence
    busy: float | None
    read: tuple[Series, ...]
    split: Split
    late: tuple[Reason, ...]

    @property
    def waits(self) -> bool:
        return self.busy is not None and self.busy < WAITS_PERCENT


def look(evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind is not Kind.TRAINING or next(looks_stalled(evidence), None) is not None:
        return
    seen = _seen(evidence)
    found = _for_data(seen) or _for_each_other(seen) or _for_nobody(seen)
    if found is not None:
        yield found


def _seen(evidence: Evidence) -> Seen:
    # Before the first step it loads and compiles.
    steady = [_steady(gpu, evidence) for gpu in evidence.gpus] if evidence.points else []
    read = [series for series in steady if series.seconds >= LONG_ENOUGH]
    complete = bool(read) and len(read) == len(evidence.gpus)
    busy = fmean(series.mean or 0.0 for series in read) if complete else None
    return Seen(evidence, busy, tuple(read), time_split(evidence.lines), _against_plan(evidence))


def _steady(gpu: GpuEvidence, evidence: Evidence) -> Series:
    began = max(evidence.started_at or 0.0, evidence.points[0][0])
    return gpu.utilization_percent.since(began + WARM_UP_SECONDS)


def _for_data(seen: Seen) -> Finding | None:
    """Steps 1 and 2: they wait for the next batch, and who is at its limit meanwhile."""
    said = seen.split.data is not None and seen.split.data >= SPLIT_DATA
    if not seen.waits and not said:
        return None
    host = seen.evidence.host
    limits = (
        ("disk", _disk(host), ("local_data", "bigger_files", "more_workers", "faster_disk")),
        ("memory", _memory(host), ("fewer_workers", "stream_data", "more_ram")),
        ("cpu", _cpu(host), ("preprocess_before", "more_cpus", "more_workers")),
    )
    for name, reasons, codes in limits:
        if reasons:
            because = (*_first(seen), *reasons, *_fourth(seen, said=said))
            return Finding(
                f"data_starved_{name}", Sure.LIKELY, because, remedies(*codes), seen.split.lines if said else ()
            )
    if said:
        because = (*_first(seen), *_host_is_fine(host), *_fourth(seen, said=True))
        what = remedies("more_workers", "prefetch", "pin_memory", "local_data")
        return Finding("data_starved", Sure.CERTAIN, because, what, seen.split.lines)
    return None


def _for_each_other(seen: Seen) -> Finding | None:
    """Step 3: several GPUs that exchange more than they compute."""
    evidence = seen.evidence
    said = seen.split.communication is not None and seen.split.communication >= SPLIT_TALK
    waves = seen.waits and len(seen.read) > 1 and _fall_together(seen.read)
    link = _link(evidence.host)
    if len(evidence.gpus) < 2 or not (said or waves or (link and (seen.waits or seen.late))):
        return None
    share = evidence.predicted.communication_share
    planned = (Reason("planned_communication", {"share": round(share, 2)}),) if share and share >= COMMUNICATES else ()
    path = _slow_path(evidence)
    because = (
        *_first(seen),
        *_host_is_fine(evidence.host),
        *((Reason("waves", {"gpus": len(seen.read)}),) if waves else ()),
        *link,
        *path,
        *planned,
        *((Reason("split_communication", {"share": round(seen.split.communication or 0.0, 2)}),) if said else ()),
        *seen.late,
    )
    what = ("nccl_interface", *_TALK) if path else _TALK
    sure = Sure.CERTAIN if said else Sure.LIKELY if planned or link or path else Sure.POSSIBLE
    return Finding("communication_bound", sure, because, remedies(*what), seen.split.lines if said else ())


_TALK = ("bigger_batch", "accumulate", "other_parallelism", "faster_link", "overlap")


def _for_nobody(seen: Seen) -> Finding | None:
    """Neither the machine nor the others: gaps between steps, small steps, or only later than was planned."""
    because = (*_first(seen), *_host_is_fine(seen.evidence.host), *_fourth(seen, said=False))
    if seen.waits and any(pstdev(series.values) >= GAPS_PERCENT for series in seen.read):
        what = remedies("more_workers", "pin_memory", "prefetch", "profile")
        return Finding("data_starved", Sure.POSSIBLE, because, what)
    if seen.waits:
        return Finding(
            "small_work", Sure.POSSIBLE, because, remedies("bigger_batch", "fewer_syncs", "compile", "profile")
        )
    if seen.late:
        return Finding(
            "slower_than_planned", Sure.LIKELY, seen.late, remedies("compare_layout", "check_clocks", "profile")
        )
    return None


def _first(seen: Seen) -> tuple[Reason, ...]:
    return (Reason("gpus_wait", {"utilization": round(seen.busy)}),) if seen.busy is not None and seen.waits else ()


def _fourth(seen: Seen, *, said: bool) -> tuple[Reason, ...]:
    split = (Reason("split_data", {"share": round(seen.split.data or 0.0, 2)}),) if said else ()
    return (*split, *(seen.late or _as_planned(seen.evidence)))


def _disk(host: HostEvidence) -> tuple[Reason, ...]:
    return _over(
        ("iowait", host.iowait_percent, IO_PERCENT),
        ("pressure_io", host.pressure_io_percent, IO_PERCENT),
        ("disk_busy", host.disk_busy_percent, DISK_PERCENT),
    )


def _memory(host: HostEvidence) -> tuple[Reason, ...]:
    """It is full and gives pages away to read them again."""
    used, total = host.memory_used_bytes.middle, host.memory_total_bytes
    full = used is not None and bool(total) and used >= MEMORY_SHARE * (total or 0.0)
    pressed = _over(("pressure_memory", host.pressure_memory_percent, MEMORY_PERCENT))
    return (*((Reason("host_memory", {"share": round((used or 0) / (total or 1), 3), "total": total or 0}),) if full else ()), *pressed)  # fmt: skip


def _cpu(host: HostEvidence) -> tuple[Reason, ...]:
    return _over(("cpu_full", host.cpu_percent, CPU_PERCENT))


def _over(*signals: tuple[str, Series, float]) -> tuple[Reason, ...]:
    means = ((code, series.mean, limit) for code, series, limit in signals)
    return tuple(
        Reason(code, {"percent": round(mean)}) for code, mean, limit in means if mean is not None and mean >= limit
    )


def _host_is_fine(host: HostEvidence) -> tuple[Reason, ...]:
    """Said where step 2 was looked at and found nothing."""
    cpu, iowait = host.cpu_percent.mean, host.iowait_percent.mean
    if cpu is None or iowait is None:
        return ()
    return (Reason("host_fine", {"cpu": round(cpu), "iowait": round(iowait)}),)


def _fall_together(read: tuple[Series, ...]) -> bool:
    """Where the first one has a trough, most of the others have theirs."""
    lengths = min(len(series.points) for series in read)
    troughs = [[value < TROUGH * max(series.values) for value in series.values[:lengths]] for series in read]
    places = [place for place in range(lengths) if troughs[0][place]]
    if len(places) < 3:
        return False
    return fmean(fmean(one[place] for one in troughs[1:]) for place in places) >= TOGETHER


def _link(host: HostEvidence) -> tuple[Reason, ...]:
    """What goes over the network is about what the link was measured to carry."""
    takes, carries = host.network_bytes_per_second.middle, host.link_bytes_per_second
    if takes is None or not carries or takes < LINK_FULL * carries:
        return ()
    return (Reason("link_full", {"share": round(takes / carries, 2), "bytes": round(carries)}),)


def _slow_path(evidence: Evidence) -> tuple[Reason, ...]:
    slow = next(matches(evidence.lines, SLOW_PATH), None)
    fast = next(matches(evidence.lines, FAST_PATH), None)
    return (Reason("nccl_sockets"),) if slow is not None and fast is None else ()


def _against_plan(evidence: Evidence) -> tuple[Reason, ...]:
    planned, takes = evidence.predicted.seconds_per_step, evidence.steps.middle
    if (
        planned is None
        or takes is None
        or takes < max(SLOWER * planned, evidence.predicted.seconds_per_step_high or 0.0)
    ):
        return ()
    values = {"planned": round(planned, 3), "takes": round(takes, 3), "times": round(takes / planned, 1)}
    return (Reason("slower", values),)


def _as_planned(evidence: Evidence) -> tuple[Reason, ...]:
    planned, takes = evidence.predicted.seconds_per_step, evidence.steps.middle
    if planned is None or takes is None or takes > AS_PLANNED * planned:
        return ()
    return (Reason("as_planned", {"takes": round(takes, 3), "planned": round(planned, 3)}),)
