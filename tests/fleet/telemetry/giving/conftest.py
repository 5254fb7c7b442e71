"""A machine whose two GPUs were read two seconds ago, and the page that Prometheus gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet.inventory.models import Instance, Observation
from fleet.providers.base import Billing
from fleet.teams.models import APIToken, Scope
from fleet.teams.secrets import new_token
from fleet.telemetry.giving.families import families_of
from fleet.telemetry.giving.read import read_fleet
from fleet.telemetry.giving.text import pieces
from fleet.telemetry.models import Agent, GpuLatest, HostLatest

NOW = datetime(2026, 11, 10, 12, 0, tzinfo=UTC)
READING = {
    "utilization_percent": 97.0,
    "memory_utilization_percent": 41.0,
    "memory_used_bytes": 60 << 30,
    "memory_reserved_bytes": 1 << 30,
    "memory_total_bytes": 80 << 30,
    "sm_activity": 0.875,
    "tensor_activity": 0.5,
    "power_watts": 612.5,
    "temperature_celsius": 61.0,
    "sm_clock_mhz": 1755,
    "pcie_rx_bytes_per_second": 2e9,
}


@pytest.fixture
def page_of() -> Callable[..., str]:
    """page_of(team) is what Prometheus gets at NOW."""

    def read(team, *, now: datetime = NOW) -> str:
        return b"".join(pieces(families_of(read_fleet([team.pk], now=now), now=now))).decode()

    return read


@pytest.fixture
def machine(make_instance, project) -> Instance:
    found: Instance = make_instance(
        name="train-01",
        gpus=2,
        project=project,
        price_per_hour=Decimal("8.5"),
        currency="USD",
        last_seen_at=NOW,
        first_seen_at=NOW - timedelta(hours=2),
    )
    Observation.objects.create(
        instance=found,
        seen_at=NOW - timedelta(hours=2),
        state="running",
        billing=Billing.FULL,
        price_per_hour=Decimal("8.5"),
        currency="USD",
        rule_version=1,
    )
    Agent.objects.create(instance=found, token_hash="h", prefix="rra_abc", hostname="node-1")
    for gpu in found.gpus.all():
        give_reading(gpu)
    HostLatest.objects.create(
        instance=found, sampled_at=NOW - timedelta(seconds=2), received_at=NOW, cpu_percent=34.0, load1=3.5
    )
    return found


def give_reading(gpu, *, age: timedelta = timedelta(seconds=2), now: datetime = NOW, **fields) -> GpuLatest:
    health = {"energy_joules": 5000.0, "pcie_replays": 3, "remapped_rows_failed": False}
    values = {"health": health, **READING, **fields}
    row, _ = GpuLatest.objects.update_or_create(
        gpu=gpu, defaults={"sampled_at": now - age, "received_at": now, **values}
    )
    return row


@pytest.fixture
def bearer() -> Callable[..., str]:
    """bearer(team) is the secret of a token that may read."""

    def make(team) -> str:
        new = new_token("rrk")
        APIToken.objects.create(team=team, name="prometheus", scope=Scope.READ, token_hash=new.hash, prefix=new.prefix)
        return new.secret

    return make


def series(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """{name: [(labels, value)]} of a page, by an independent parser."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            # The parser gives every counter OpenMetrics' ending, which DCGM's do not have.
            ending = "" if f"# TYPE {sample.name} " in text else "_total"
            found.setdefault(sample.name.removesuffix(ending), []).append((sample.labels, sample.value))
    return found


def values(text: str, name: str) -> Iterable[float]:
    return [value for _labels, value in series(text).get(name, [])]
