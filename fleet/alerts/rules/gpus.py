"""GPUs that are paid for and not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from fleet.alerts.findings import URGENT, Finding
from fleet.alerts.rules.base import Judged, Limits, RuleKind, each_gpu, machine_finding
from fleet.alerts.rules.reporting import MISSED_SECONDS
from fleet.alerts.snapshot import Gpu, Machine, Snapshot

LOST, COUNT, CAUSE = "gpu_lost", "gpu_count", "gpu.lost"


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


RULES = (
    # Longer than the count takes to fire: a lost card that a restart leaves out of the inventory stays one alert.
    RuleKind(LOST, CAUSE, URGENT, lost, clear_seconds=180, history="events"),
    RuleKind(COUNT, CAUSE, URGENT, count_short, for_seconds=120, history="events"),
)
