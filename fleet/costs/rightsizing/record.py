"""A verdict as the columns of its row: figures as JSON, money as text, so that no digit of it is lost in a float."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.rightsizing.sizing.figures import Measured, Option, Suggestion, Verdict
from fleet.inventory.models import Instance

CENT = Decimal("0.01")
# What an older row keeps of a change when the machine is left alone now: nothing.
OVERWRITTEN = (
    "looked_at",
    "kind",
    "why",
    "told",
    "measured",
    "change",
    "others",
    "offer_id",
    "saving_per_month",
    "currency",
)


def row_of(machine: Instance, measured: Measured, verdict: Verdict, *, currency: str, now: datetime) -> RightSizing:
    row = RightSizing(
        team_id=machine.team_id,
        instance=machine,
        looked_at=now,
        currency=currency,
        measured=measured_values(measured),
    )
    if not isinstance(verdict, Suggestion):
        row.why, row.told = verdict.why.value, dict(verdict.told)
        return row
    row.kind = verdict.best.kind.value
    row.change = change_values(verdict.best, measured)
    row.others = [change_values(option, measured) for option in verdict.others]
    row.offer_id = verdict.best.candidate.id
    row.saving_per_month = cents(verdict.best.saving)
    return row


def measured_values(found: Measured) -> dict[str, Any]:
    return {
        "gpus": found.gpus,
        "gpu_model": found.gpu_model,
        "gpu_memory_bytes": found.gpu_memory_bytes,
        "peak_memory_bytes": found.peak_memory_bytes,
        "p999_memory_bytes": found.p999_memory_bytes,
        "working_at_once": found.working_at_once,
        "holding_at_once": found.holding_at_once,
        "utilization_mean": found.utilization_mean,
        "utilization_p50": found.utilization_p50,
        "utilization_p95": found.utilization_p95,
        "sm_activity_p95": found.sm_activity_p95,
        "ram_peak_bytes": found.ram_peak_bytes,
        "cpu_peak": found.cpu_peak,
        "disk_used_bytes": found.disk_used_bytes,
        "network_peak_bytes_per_second": found.network_peak,
        "serves": found.serves,
        "coverage": found.coverage,
        "days": round(found.span_seconds / 86_400, 1),
        "hours_per_month": str(found.hours_per_month),
    }


def change_values(option: Option, measured: Measured) -> dict[str, Any]:
    """`price_before` and `price_after` an hour of the whole machine, `cost_…` and `saving` a month, in the currency of the row."""
    offer = option.candidate
    return {
        "kind": option.kind.value,
        "offer": offer.id,
        "provider": offer.provider,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "market": offer.market.value,
        "gpu_model": offer.gpu_model,
        "gpus": offer.gpus,
        "gpu_memory_bytes": offer.gpu_memory_bytes,
        "speed": round(option.speed, 3),
        "price_before": str(measured.price_per_hour),
        "price_after": str(offer.price_per_hour),
        "hours_before": str(option.hours_before),
        "hours_after": str(option.hours_after),
        "cost_before": str(cents(option.cost_before)),
        "cost_after": str(cents(option.cost_after)),
        "saving": str(cents(option.saving)),
        "losses": [{"code": loss.code.value, **loss.told} for loss in option.losses],
    }


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_EVEN)
