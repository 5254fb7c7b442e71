"""A provider's figures, made safe to keep: what no machine can have measured becomes unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from fleet.providers.base import ProviderUsage

SLOT = timedelta(minutes=5)
KEPT = timedelta(days=7)
# Clocks differ; a measurement from further ahead was never made.
AHEAD = timedelta(minutes=5)
MOST_GPUS = 64
# 10 TB/s: above what any machine moves.
MOST_BYTES_PER_S = 1e13

PER_GPU = ("gpu_utilization_percent", "gpu_memory_percent")
PERCENTS = ("cpu_percent", "memory_percent")
RATES = (
    "network_received_bytes_per_s",
    "network_sent_bytes_per_s",
    "disk_read_bytes_per_s",
    "disk_written_bytes_per_s",
)
FIGURES = (*PER_GPU, *PERCENTS, *RATES)


def figures_of(usage: ProviderUsage, *, now: datetime) -> dict[str, Any] | None:
    """FIGURES with `at` and `slot`. None: nothing in it can be true, or it is of another time than the last days."""
    at = usage.at or now
    if at.tzinfo is None or not now - KEPT <= at <= now + AHEAD:
        return None
    values: dict[str, Any] = {name: per_gpu(getattr(usage, name)) for name in PER_GPU}
    values |= {name: within(getattr(usage, name), 100) for name in PERCENTS}
    values |= {name: within(getattr(usage, name), MOST_BYTES_PER_S) for name in RATES}
    if all(value is None or value == [] for value in values.values()):
        return None
    return {**values, "at": at, "slot": slot_of(at)}


def per_gpu(given: Sequence[float]) -> list[float | None]:
    """With null where one GPU's figure cannot be true, so that the others keep their places; empty where none can."""
    kept = [within(value, 100) for value in given[: MOST_GPUS + 1]]
    return kept if len(kept) <= MOST_GPUS and any(value is not None for value in kept) else []


def within(value: object, most: float) -> float | None:
    # Some adapters hand on the decimals of an answer.
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    # Compared first: an integer of a thousand digits is no float.
    return float(value) if 0 <= value <= most and math.isfinite(value) else None


def slot_of(at: datetime) -> datetime:
    width = int(SLOT.total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // width * width, UTC)
