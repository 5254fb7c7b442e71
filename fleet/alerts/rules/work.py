"""GPUs that look busy and compute nothing, and GPUs that wait for data. What the words mean is decided in fleet/states.py."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from fleet.alerts.findings import URGENT, WARNING, Finding
from fleet.alerts.rules.base import KEEPS, Judged, Limits, RuleKind, each_gpu
from fleet.alerts.snapshot import Gpu, Machine, Snapshot
from fleet.states import GpuState

STALLED, STARVED = "stalled", "starved"


def stalled(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterable[Finding]:
    def judge(_machine: Machine, gpu: Gpu) -> Judged:
        if gpu.state is not GpuState.STALLED:
            return KEEPS if gpu.state is GpuState.UNKNOWN and not gpu.is_parent else None
        watts = {} if gpu.power_watts is None else {"watts": round(gpu.power_watts, -1)}
        return URGENT, {"percent": round(gpu.utilization_percent or 0), **watts}

    return each_gpu(snapshot, STALLED, "work.stalled", judge)


def starved(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterable[Finding]:
    def judge(machine: Machine, gpu: Gpu) -> Judged:
        if gpu.state is not GpuState.STARVED:
            return KEEPS if gpu.state is GpuState.UNKNOWN and not gpu.is_parent else None
        return WARNING, {"percent": round(gpu.utilization_percent or 0, -1), **_waits(machine)}

    return each_gpu(snapshot, STARVED, "work.starved", judge)


def _waits(machine: Machine) -> dict[str, float]:
    host = machine.host
    if host is None:
        return {}
    waits = {"iowait_percent": host.cpu_iowait_percent, "pressure_percent": host.pressure_io_percent}
    return {name: round(value, -1) for name, value in waits.items() if value is not None}


RULES = (
    RuleKind(STALLED, "work.stalled", URGENT, stalled, for_seconds=600, clear_seconds=120, history="gpu"),
    RuleKind(STARVED, "work.starved", WARNING, starved, for_seconds=900, clear_seconds=300, history="gpu"),
)
