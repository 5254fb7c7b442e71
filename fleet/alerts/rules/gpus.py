"""GPUs that are paid for and not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from fleet.alerts.findings import NOTE, URGENT, WARNING, Finding
from fleet.alerts.rules.base import Judged, Limits, RuleKind, each_gpu, machine_finding
from fleet.alerts.rules.reporting import MISSED_SECONDS
from fleet.alerts.snapshot import Gpu, Machine, Snapshot
from fleet.providers.drift import Card, Drift, Rented, differences

LOST, COUNT, CAUSE = "gpu_lost", "gpu_count", "gpu.lost"
DRIFT = "not_as_rented"


def lost(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterable[Finding]:
    return each_gpu(snapshot, LOST, CAUSE, _lost)


def _lost(_machine: Machine, gpu: Gpu) -> Judged:
    return (URGENT, {}) if gpu.lost else None


def count_short(snapshot: Snapshot, _limits: Limits, now: datetime) -> Iterator[Finding]:
    """Fewer cards than the provider lists, on a machine whose agent has named some."""
    for machine in snapshot.machines:
        cards = sum(not gpu.is_part for gpu in machine.gpus)
        if machine.agent is None or machine.powered is False or not cards or cards >= (machine.gpu_count or 0):
            continue
        assert machine.gpu_count is not None
        missing = machine.gpu_count - cards
        quiet = (now - machine.agent.heard_at).total_seconds() > MISSED_SECONDS
        finding = machine_finding(
            machine, COUNT, CAUSE, URGENT, keeps=quiet, scope="missing", values={"found": cards, "paid": machine.gpu_count}
        )  # fmt: skip
        yield _at_stake(finding, machine.price_per_gpu, missing)


def _at_stake(finding: Finding, price_per_gpu: Decimal | None, missing: int) -> Finding:
    return replace(finding, price_per_hour=None if price_per_gpu is None else price_per_gpu * missing)


def not_as_rented(snapshot: Snapshot, _limits: Limits, now: datetime) -> Iterator[Finding]:
    """Another model, less memory or more cards than the provider lists, as the driver names them."""
    for machine in snapshot.machines:
        if machine.agent is None or machine.powered is False:
            continue
        rented = Rented(machine.gpu_model, machine.gpu_count, machine.gpu_memory_mib)
        quiet = (now - machine.agent.heard_at).total_seconds() > MISSED_SECONDS
        for one in differences(rented, (Card(gpu.name, gpu.memory_total_bytes, gpu.is_part) for gpu in machine.gpus)):
            severity = NOTE if one.kind is Drift.MORE else WARNING
            values = {"what": one.kind.value, "found": one.found, "rented": one.rented}
            yield machine_finding(
                machine, DRIFT, "gpu.not_as_rented", severity, detail=one.kind.value, keeps=quiet, values=values
            )


RULES = (
    # Longer than the count takes to fire: a lost card that a restart leaves out of the inventory stays one alert.
    RuleKind(LOST, CAUSE, URGENT, lost, clear_seconds=180, history="events"),
    RuleKind(COUNT, CAUSE, URGENT, count_short, for_seconds=120, history="events"),
    RuleKind(DRIFT, "gpu.not_as_rented", WARNING, not_as_rented, for_seconds=120),
)
