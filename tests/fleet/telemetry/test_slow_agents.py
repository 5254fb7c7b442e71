"""An agent that is told to read once a minute is not silent in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import Instance
from fleet.states import GpuState
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import Agent, GpuLatest

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def state_after(make_instance):
    """state_after(interval, age): of a GPU whose newest reading is that many seconds old."""

    def look(interval_seconds: int, age_seconds: int) -> GpuState:
        instance = make_instance(gpus=1)
        report_seconds = max(10, interval_seconds)
        Agent.objects.create(
            instance=instance, token_hash="h", interval_seconds=interval_seconds, report_seconds=report_seconds
        )
        read_at = NOW - timedelta(seconds=age_seconds)
        GpuLatest.objects.create(
            gpu=instance.gpus.get(), sampled_at=read_at, received_at=read_at, utilization_percent=90.0
        )
        return machines_now(Instance.objects.filter(pk=instance.pk), now=NOW)[0].state

    return look


@pytest.mark.parametrize(
    ("interval", "age", "state"),
    [
        (5, 29, GpuState.WORKING),
        (5, 31, GpuState.UNKNOWN),
        (60, 119, GpuState.WORKING),
        (60, 136, GpuState.UNKNOWN),
    ],
)
def test_silence_is_measured_by_the_agents_own_pace(state_after, interval: int, age: int, state: GpuState):
    assert state_after(interval, age) == state
