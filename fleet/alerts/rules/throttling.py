"""GPUs that are held back by heat or by power. Bits are NVML's reasons for lower clocks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from fleet.alerts.findings import WARNING, Finding
from fleet.alerts.rules.base import Judged, Limits, RuleKind, Threshold, each_gpu, fires
from fleet.alerts.snapshot import Gpu, Machine, Snapshot

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, HW_POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
THERMAL, POWER, CAUSE = "thermal", "power", "gpu.throttled"
HYSTERESIS_CELSIUS = 4.0


def thermal(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterable[Finding]:
    """Its clocks are lowered for heat, or it is as hot as that."""
    hot, open_parts = limits["celsius"], snapshot.open_parts(CAUSE, THERMAL)

    def judge(machine: Machine, gpu: Gpu) -> Judged:
        reasons, celsius = gpu.throttle_reasons, gpu.temperature_celsius
        slowed = reasons is not None and reasons & (SW_THERMAL | HW_THERMAL)
        if not slowed and (celsius is None or celsius < hot - HYSTERESIS_CELSIUS):
            return None
        is_open = (machine.subject, f"gpu:{gpu.pk}") in open_parts
        if not slowed and not fires(celsius or 0.0, hot, hot - HYSTERESIS_CELSIUS, is_open=is_open):
            return None
        values = {} if celsius is None else {"celsius": round(celsius)}
        return WARNING, {**values, "slowed": bool(slowed)}

    return each_gpu(snapshot, THERMAL, CAUSE, judge)


def power(snapshot: Snapshot, limits: Limits, _now: datetime) -> Iterable[Finding]:
    """The power supply brakes it, or it is capped at less than what cards of its name are given elsewhere in the fleet.

    The cap of its own full power is no trouble: that is what a busy card runs into.
    """
    share, full = limits["percent"] / 100, _highest_limits(snapshot)

    def judge(_machine: Machine, gpu: Gpu) -> Judged:
        reasons = gpu.throttle_reasons
        if not reasons:
            return None
        braked = bool(reasons & HW_POWER_BRAKE) or bool(reasons & HW_SLOWDOWN and not reasons & HW_THERMAL)
        if braked:
            return WARNING, {"braked": True}
        limit = gpu.power_limit_watts
        if reasons & SW_POWER_CAP and limit is not None and limit < share * full.get(gpu.name, 0.0):
            return WARNING, {"limit_watts": round(limit), "full_watts": round(full[gpu.name])}
        return None

    return each_gpu(snapshot, POWER, CAUSE, judge)


def _highest_limits(snapshot: Snapshot) -> dict[str, float]:
    """Watts by the name of the card: what one of them is given somewhere in the fleet."""
    found: dict[str, float] = {}
    for machine in snapshot.machines:
        for gpu in machine.gpus:
            limit = gpu.power_limit_watts
            if limit is not None and not gpu.is_part and limit > found.get(gpu.name, 0.0):
                found[gpu.name] = limit
    return found


RULES = (
    RuleKind(THERMAL, CAUSE, WARNING, thermal, (Threshold("celsius", 88, 60, 110, "celsius"),), for_seconds=300, history="gpu"),
    RuleKind(POWER, CAUSE, WARNING, power, (Threshold("percent", 80, 20, 99, "percent"),), for_seconds=300, history="gpu"),
)  # fmt: skip
