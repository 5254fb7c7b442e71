"""Samples and their rollups, as tests of rollups lay them out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fleet.inventory.models import GPU, Instance
from fleet.states import GpuState
from fleet.telemetry.models import Agent, GpuSample, HostSample
from fleet.telemetry.rollups.fleet_models import FleetRollup
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, GpuRollupHour
from fleet.telemetry.state_codes import SECONDS_COLUMNS, STATE_CODES
from tests.fleet.telemetry.conftest import enrolled


def reporting(instance: Instance, *, every: int) -> Agent:
    """An agent that samples so often, seen since long ago."""
    agent, _ = enrolled(instance)
    Agent.objects.filter(pk=agent.pk).update(interval_seconds=every)
    return agent


def store(
    gpu: GPU, since: datetime, *, seconds: int, every: int, state: GpuState | None = GpuState.WORKING, **values: Any
) -> None:
    """Samples at since, since + every, …, all alike; a list gives one value a sample."""
    GpuSample.objects.bulk_create(
        GpuSample(
            gpu=gpu,
            sampled_at=since + timedelta(seconds=every * step),
            state=STATE_CODES[state] if state else None,
            **{name: value[step] if isinstance(value, list) else value for name, value in values.items()},
        )
        for step in range(seconds // every)
    )


def store_host(instance: Instance, since: datetime, *, seconds: int, every: int, **values: Any) -> None:
    HostSample.objects.bulk_create(
        HostSample(instance=instance, sampled_at=since + timedelta(seconds=every * step), **values)
        for step in range(seconds // every)
    )


def seconds_in(row: GpuRollupFiveMinutes | GpuRollupHour | FleetRollup) -> dict[GpuState, float]:
    """Only the states that it was in."""
    found = {state: getattr(row, column) for state, column in SECONDS_COLUMNS.items()}
    return {state: seconds for state, seconds in found.items() if seconds}
