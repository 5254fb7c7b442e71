"""A GPU that failed under the run, or a program that made an error on one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.diagnosis.evidence import Event, Evidence
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies

# NVIDIA's own list: those that a program causes itself, and those that only the hardware or the driver can.
APPLICATION = frozenset({13, 31, 43, 45, 68, 69})
# Said by NVML beside XIDs.
HARD_KINDS = frozenset({"gpu_lost", "ecc_uncorrected", "row_remap_failure", "reset_required", "driver_hung"})


def look(evidence: Evidence) -> Iterator[Finding]:
    of_run = [event for event in evidence.events if evidence.started_at is None or event.at >= evidence.started_at]
    xids = [event for event in of_run if event.kind == "xid" and event.code is not None]
    hard = [event for event in of_run if event.kind in HARD_KINDS or (event in xids and event.code not in APPLICATION)]
    soft = [event for event in xids if event.code in APPLICATION]
    if hard:
        worst = next((event for event in hard if event.kind == "gpu_lost"), hard[0])
        why = remedies("other_machine", "resume", "tell_provider")
        yield Finding("gpu_fault", Sure.CERTAIN, (_reason(worst),), why, gpus=_gpus(hard), since=worst.at)
    elif soft:
        why = remedies("look_at_log", "blocking_launches")
        yield Finding("gpu_program", Sure.LIKELY, (_reason(soft[0]),), why, gpus=_gpus(soft), since=soft[0].at)


def _reason(event: Event) -> Reason:
    if event.kind == "xid":
        return Reason("xid", {"code": event.code or 0})
    return Reason("gpu_lost") if event.kind == "gpu_lost" else Reason("nvml_event", {"event": event.kind})


def _gpus(events: Sequence[Event]) -> tuple[int, ...]:
    return tuple(sorted({event.gpu for event in events if event.gpu is not None}))
