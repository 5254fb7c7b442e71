"""A machine and offers to hold against it; every test says only what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from fleet.costs.rightsizing.sizing.figures import Candidate, Measured
from fleet.providers.base import Market, Tenancy

NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)
GB = 10**9
GIB = 2**30
# What the driver shows of a card with 80 GB on it.
CARD_80 = 81_559 * 2**20
DAY = 86_400

# rp-a100-03: 3 of its 4 GPUs worked all month.
MACHINE = Measured(
    provider="runpod",
    region="US-KS-2",
    gpu_model="A100 SXM 80 GB",
    gpus=4,
    market=Market.ON_DEMAND,
    tenancy=Tenancy.DEDICATED_GPU,
    price_per_hour=Decimal("6.56"),
    span_seconds=30 * DAY,
    running_seconds=30 * DAY,
    coverage=0.98,
    newest_at=NOW - timedelta(hours=1),
    peak_memory_bytes=0.68 * CARD_80,
    p999_memory_bytes=0.66 * CARD_80,
    working_at_once=3,
    holding_at_once=3,
    utilization_mean=0.82,
    utilization_p50=0.85,
    utilization_p95=0.97,
    gpu_memory_bytes=CARD_80,
    disk_used_bytes=310 * GB,
    network_peak=310 * GB / (25 * 60),
)
# The same kind with three GPUs.
THREE = Candidate(
    id=1,
    provider="runpod",
    region="US-KS-2",
    instance_type="",
    market=Market.ON_DEMAND,
    tenancy=Tenancy.DEDICATED_GPU,
    price_per_hour=Decimal("4.92"),
    gpu_model="A100 SXM 80 GB",
    gpus=3,
    gpu_memory_bytes=CARD_80,
    internet=1e9,
    disk_bytes=1000 * GB,
)


def machine(**changes: Any) -> Measured:
    return replace(MACHINE, **changes)


def offer(**changes: Any) -> Candidate:
    return replace(THREE, **changes)
