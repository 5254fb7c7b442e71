"""EC2's words in ours, also those that a test server never says."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.providers.aws_facts import Facts, instance_of
from fleet.providers.base import Billing, InstanceState, Market, Money, Tenancy

NOTHING = Facts(types={}, volume_gb={}, image_names={}, spot_prices={}, prices={}, storage_price=None)
SLICE = {
    "VCpuInfo": {"DefaultVCpus": 4},
    "MemoryInfo": {"SizeInMiB": 8192},
    "GpuInfo": {
        "Gpus": [
            {
                "Name": "L4",
                "Count": 0,
                "LogicalGpuCount": 1,
                "GpuPartitionSize": 0.125,
                "MemoryInfo": {"SizeInMiB": 2861},
            }
        ]
    },
}


def row(state: str = "running", **more):
    return {
        "InstanceId": "i-0a",
        "InstanceType": "p4d.24xlarge",
        "State": {"Name": state},
        "Placement": {"AvailabilityZone": "us-east-1a", "Tenancy": "default"},
        **more,
    }


def made(facts: Facts = NOTHING, **more):
    return instance_of(row(**more), "us-east-1", facts)


@pytest.mark.parametrize(
    ("raw", "state", "billing"),
    [
        ("pending", InstanceState.PROVISIONING, Billing.STORAGE),
        ("running", InstanceState.RUNNING, Billing.FULL),
        ("stopping", InstanceState.STOPPING, Billing.STORAGE),
        ("stopped", InstanceState.STOPPED, Billing.STORAGE),
        ("shutting-down", InstanceState.TERMINATING, Billing.NONE),
        ("terminated", InstanceState.TERMINATED, Billing.NONE),
        ("hibernating-since-2027", InstanceState.UNKNOWN, Billing.UNKNOWN),
    ],
)
def test_states(raw, state, billing):
    machine = made(state=raw)
    assert (machine.state, machine.raw_state, machine.billing) == (state, raw, billing)


def test_a_machine_on_its_way_into_hibernation_is_billed_in_full():
    assert made(state="stopping", HibernationOptions={"Configured": True}).billing is Billing.FULL


def test_a_stopped_machine_on_a_dedicated_host_costs_we_do_not_know_what():
    assert made(state="stopped", Placement={"Tenancy": "host"}).billing is Billing.UNKNOWN


@pytest.mark.parametrize(
    ("lifecycle", "market"),
    [
        ("spot", Market.SPOT),
        ("scheduled", Market.RESERVED),
        ("capacity-block", Market.PREPAID),
        ("interruptible-capacity-reservation", Market.SPOT),
        ("a-word-of-2028", Market.UNKNOWN),
    ],
)
def test_markets(lifecycle, market):
    assert made(InstanceLifecycle=lifecycle).market is market


@pytest.mark.parametrize(
    ("raw", "tenancy"),
    [
        ("default", Tenancy.DEDICATED_GPU),
        ("dedicated", Tenancy.DEDICATED_HOST),
        ("host", Tenancy.DEDICATED_HOST),
        ("a-word-of-2028", Tenancy.UNKNOWN),
    ],
)
def test_tenancies(raw, tenancy):
    assert made(Placement={"Tenancy": raw}).tenancy is tenancy


def test_bare_metal_is_a_whole_host():
    metal = {**SLICE, "BareMetal": True}
    facts = Facts(
        types={"p4d.24xlarge": metal}, volume_gb={}, image_names={}, spot_prices={}, prices={}, storage_price=None
    )
    assert made(facts).tenancy is Tenancy.DEDICATED_HOST


def test_an_eighth_of_a_gpu_is_a_fraction():
    facts = Facts(
        types={"p4d.24xlarge": SLICE}, volume_gb={}, image_names={}, spot_prices={}, prices={}, storage_price=None
    )
    machine = made(facts)
    assert (machine.tenancy, machine.gpu_count, machine.gpu_memory_mib) == (Tenancy.FRACTION, 1, 2861)


def test_what_no_call_told_is_unknown_and_not_zero():
    machine = made()
    unknown = (machine.gpu_count, machine.vcpus, machine.ram_mib, machine.disk_gb, machine.rate, machine.storage_rate)
    assert unknown == (None,) * 6


def test_what_was_reserved_or_bought_ahead_has_no_known_price():
    facts = Facts(
        types={},
        volume_gb={},
        image_names={},
        spot_prices={},
        prices={"p4d.24xlarge": Decimal(22)},
        storage_price=None,
    )
    assert made(facts).rate == Money(Decimal(22), "USD")
    assert made(facts, InstanceLifecycle="capacity-block").rate is None
    assert made(facts, Placement={"Tenancy": "host"}).rate is None


def test_the_moment_of_a_stop_is_read_from_its_reason():
    machine = made(state="stopped", StateTransitionReason="User initiated (2026-11-30 06:41:14 GMT)")
    assert machine.stopped_at == datetime(2026, 11, 30, 6, 41, 14, tzinfo=UTC)
