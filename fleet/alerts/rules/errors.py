"""XIDs, which are moments, and memory errors, which are counts that a reset sets back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from fleet.alerts.findings import URGENT, WARNING, Finding, worst
from fleet.alerts.rules.base import Judged, Limits, RuleKind, Threshold, each_gpu, gpu_finding, machine_finding
from fleet.alerts.rules.xids import xid_of
from fleet.alerts.snapshot import Gpu, Happened, Machine, Snapshot

XID, ECC, FAULT = "xid", "ecc", "gpu.fault"


def xids(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    """An XID stays until there was none of its code for a while and the GPU was read since then."""
    quiet_for = timedelta(minutes=limits["quiet_minutes"])
    for machine in snapshot.machines:
        for happened in machine.happened:
            if happened.kind != XID or machine.powered is False:
                continue
            recent = now - happened.last_at < quiet_for
            gpu = machine.gpu(happened.gpu_pk)
            settled = gpu.fresh and not gpu.lost if gpu is not None else True
            if recent or not settled:
                yield _xid(machine, gpu, happened, keeps=not recent)


def _xid(machine: Machine, gpu: Gpu | None, happened: Happened, *, keeps: bool) -> Finding:
    xid = xid_of(happened.code)
    values = {
        "code": happened.newest if happened.code is None else happened.code,
        "times": happened.count,
        "at": happened.last_at.isoformat(),
    }
    code = happened.code if happened.code is not None else "?"
    if gpu is None:
        detail = f"xid:{code}"
        return machine_finding(
            machine, XID, xid.family, xid.severity, detail=detail, since=happened.last_at, values=values, keeps=keeps
        )
    detail = f"xid:{code}:gpu:{gpu.pk}"
    return gpu_finding(
        machine, gpu, XID, xid.family, xid.severity, detail=detail, since=happened.last_at, values=values, keeps=keeps
    )


def memory_errors(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterable[Finding]:
    def judge(_machine: Machine, gpu: Gpu) -> Judged:
        found = list(_memory_errors(gpu, limits["uncorrected"]))
        if not found:
            return None
        values = {name: value for _severity, name, value in found}
        return worst(severity for severity, _name, _value in found), values

    return each_gpu(snapshot, ECC, FAULT, judge)


def _memory_errors(gpu: Gpu, uncorrected: float) -> Iterator[tuple[str, str, int | bool]]:
    if gpu.ecc_uncorrected is not None and gpu.ecc_uncorrected >= uncorrected:
        yield URGENT, "uncorrected", gpu.ecc_uncorrected
    if gpu.remap_failed:
        yield URGENT, "remap_failed", True
    if gpu.remap_pending:
        yield WARNING, "remap_pending", True


RULES = (
    RuleKind(
        XID, FAULT, WARNING, xids, (Threshold("quiet_minutes", 60, 5, 1_440, "minutes"),), clear_seconds=0, history="events"
    ),
    RuleKind(ECC, FAULT, URGENT, memory_errors, (Threshold("uncorrected", 1, 1, 1_000, "count"),), history="events"),
)  # fmt: skip
