"""A machine with hours of telemetry, and offers of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.inventory.models import Instance
from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.providers.base import Market, Tenancy
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.models import GpuRollupHour, HostRollupHour
from tests.fleet.costs.rightsizing.machines import CARD_80, GB, NOW

SECONDS = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")


@pytest.fixture(autouse=True)
def _morning():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def rented(make_instance):
    """A machine like rp-a100-03: four A100 at $6.56."""

    def rent(name: str = "rp-a100-03", **fields: object) -> Instance:
        known = {
            "gpus": 4,
            "gpu_model": "A100 SXM 80 GB",
            "gpu_memory_mib": 81_920,
            "price_per_hour": Decimal("6.56"),
            "market": Market.ON_DEMAND,
            "tenancy": Tenancy.DEDICATED_GPU,
            "vcpus": 64,
        }
        machine: Instance = make_instance(name=name, **{**known, **fields})
        machine.gpus.update(memory_total_bytes=CARD_80)
        return machine

    return rent


@pytest.fixture
def hours(db):
    """Hours of telemetry that end now: `working` of the GPUs work, the others are free."""

    ensure_partitions(now=NOW, since=NOW - timedelta(days=31))

    def read(machine: Instance, *, working: int = 3, days: int = 8, memory: float = 0.68, busy: float = 85.0) -> None:
        last = HOUR.floor(NOW)
        for index, gpu in enumerate(machine.gpus.order_by("index")):
            works = index < working
            GpuRollupHour.objects.bulk_create(
                GpuRollupHour(
                    gpu=gpu,
                    bucket_at=last - timedelta(hours=back + 1),
                    samples=360,
                    coverage=1.0,
                    **seconds("working" if works else "free"),
                    memory_used_bytes_max=memory * CARD_80 if works else 0,
                    utilization_percent_avg=busy if works else 0.0,
                )
                for back in range(days * 24)
            )
        HostRollupHour.objects.bulk_create(
            HostRollupHour(
                instance=machine,
                bucket_at=last - timedelta(hours=back + 1),
                samples=360,
                coverage=1.0,
                cpu_percent_p95=25.0,
                memory_used_bytes_max=100.0 * GB,
                filesystem_used_bytes_max=310.0 * GB,
                network_rx_bytes_per_second_p95=200e6,
                network_tx_bytes_per_second_p95=1e6,
            )
            for back in range(2)
        )

    return read


def seconds(state: str) -> dict[str, float]:
    return {f"{name}_seconds": 3600.0 if name == state else 0.0 for name in SECONDS}


@pytest.fixture
def offered(acme) -> Callable[..., Offer]:
    """An offer of a live list that was read just now."""
    source = OfferSource.objects.create(team=acme, kind=SourceKind.LIVE, name="Live", read_at=NOW)

    def offer(key: str = "three", **fields: object) -> Offer:
        known = {
            "provider": "manual",
            "price_per_hour": Decimal("4.92"),
            "currency": "USD",
            "gpu_model": "A100 SXM 80 GB",
            "gpu_count": 3,
            "gpu_memory_mib": 81_920,
            "market": Market.ON_DEMAND,
            "tenancy": Tenancy.DEDICATED_GPU,
            "seen_at": NOW,
        }
        return Offer.objects.create(source=source, key=key, **{**known, **fields})

    return offer
