from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import Instance
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, GpuRollupHour

NOW = datetime(2026, 11, 17, 8, 14, tzinfo=UTC)
STATES = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")


def seconds(**given: float) -> dict[str, float]:
    return {f"{state}_seconds": given.get(state, 0.0) for state in STATES}


@pytest.fixture
def ran():
    """ran(machine, since, hours=24) rolls up so many hours of work of its first GPU; `lost`: that read nothing."""

    def run(machine: Instance, since: datetime, *, hours: int = 24, lost: bool = False) -> None:
        ensure_partitions(now=since)
        gpu = machine.gpus.order_by("index")[0]
        reading = {} if lost else {"utilization_percent_avg": 90, "memory_used_bytes_avg": 1e9, "power_watts_avg": 300}
        GpuRollupHour.objects.bulk_create(
            GpuRollupHour(
                gpu=gpu,
                bucket_at=since + timedelta(hours=number),
                samples=360,
                coverage=1,
                **seconds(**{"unknown" if lost else "working": 3600}),
                **reading,
            )
            for number in range(hours)
        )

    return run


@pytest.fixture
def throttled():
    """Five minutes of its first GPU with these bits."""

    def run(machine: Instance, at: datetime, bits: int) -> None:
        ensure_partitions(now=at)
        GpuRollupFiveMinutes.objects.create(
            gpu=machine.gpus.order_by("index")[0],
            bucket_at=at,
            samples=30,
            coverage=1,
            throttle_reasons=bits,
            **seconds(working=300),
        )

    return run


@pytest.fixture
def happened():
    def write(machine: Instance, at: datetime, kind: str, code: int | None = None) -> MachineEvent:
        return MachineEvent.objects.create(instance=machine, at=at, received_at=at, kind=kind, code=code)

    return write
