"""What a provider measured is shown and decides nothing: a machine of which only its provider says 0 % is unknown, not idle."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.inventory.provider_word.models import ProviderUsage
from fleet.states import IDLE_MONEY, Evidence, GpuState
from fleet.telemetry.latest import machines_now


@pytest.fixture
def at_rest(make_instance) -> Instance:
    """A day in which the provider measured nothing but zeros, and no agent reported."""
    machine: Instance = make_instance(gpus=2)
    now = timezone.now()
    for slots in range(288):
        at = now - timedelta(minutes=5 * slots)
        ProviderUsage.objects.create(
            instance=machine, slot=at, at=at, gpu_utilization_percent=[0.0, 0.0], gpu_memory_percent=[0.0, 0.0],
            cpu_percent=0.0, network_received_bytes_per_s=0.0, network_sent_bytes_per_s=0.0,
        )  # fmt: skip
    return machine


@pytest.mark.parametrize("brief", [True, False])
def test_only_the_providers_zeros_are_unknown_and_not_idle(at_rest, brief):
    (now,) = machines_now([at_rest], now=timezone.now(), brief=brief)
    states = {now.state, *(gpu.verdict.state for gpu in now.gpus)}
    assert states == {GpuState.UNKNOWN}
    assert not states & IDLE_MONEY


def test_the_evidence_of_a_state_has_no_place_for_it():
    assert not [name for name in Evidence.__struct_fields__ if "provider" in name or "source" in name]
