"""EC2's words in ours, also those that a test server never says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.providers.aws_facts import Facts, Prices, image_of, instance_of
from fleet.providers.base import Billing, Capability, ImageState, InstanceState, Market, Money, Tenancy
from fleet.providers.typed import PriceTable

NO_PRICES = Prices(machines=PriceTable({}, "USD"), storage=None)
NOTHING = Facts(types={}, volume_gb={}, image_names={}, spot_prices={}, spot_requests={}, prices=NO_PRICES)
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
    facts = replace(NOTHING, types={"p4d.24xlarge": metal})
    assert made(facts).tenancy is Tenancy.DEDICATED_HOST


def test_an_eighth_of_a_gpu_is_a_fraction():
    facts = replace(NOTHING, types={"p4d.24xlarge": SLICE})
    machine = made(facts)
    assert (machine.tenancy, machine.gpu_count, machine.gpu_memory_mib) == (Tenancy.FRACTION, 1, 2861)


def test_what_no_call_told_is_unknown_and_not_zero():
    machine = made()
    unknown = (machine.gpu_count, machine.vcpus, machine.ram_mib, machine.disk_gb, machine.rate, machine.storage_rate)
    assert unknown == (None,) * 6


def test_what_was_reserved_or_bought_ahead_has_no_known_price():
    facts = replace(NOTHING, prices=replace(NO_PRICES, machines=PriceTable({"p4d.24xlarge": Decimal(22)}, "USD")))
    assert made(facts).rate == Money(Decimal(22), "USD")
    assert made(facts, InstanceLifecycle="capacity-block").rate is None
    assert made(facts, Placement={"Tenancy": "host"}).rate is None


def test_the_moment_of_a_stop_is_read_from_its_reason():
    machine = made(state="stopped", StateTransitionReason="User initiated (2026-11-30 06:41:14 GMT)")
    assert machine.stopped_at == datetime(2026, 11, 30, 6, 41, 14, tzinfo=UTC)


RUNNING = {Capability.STOP, Capability.TERMINATE, Capability.REBOOT, Capability.SAVE_IMAGE}


@pytest.mark.parametrize(
    ("requests", "actions"),
    [
        ({"sir-1": "one-time"}, RUNNING - {Capability.STOP}),
        ({"sir-1": "persistent"}, RUNNING),
        ({"sir-1": "a-word-of-2028"}, None),
        ({}, None),
    ],
)
def test_a_one_time_spot_machine_cannot_be_stopped(requests, actions):
    facts = replace(NOTHING, spot_requests=requests)
    assert made(facts, InstanceLifecycle="spot", SpotInstanceRequestId="sir-1").actions == actions


def test_a_machine_without_a_root_volume_cannot_be_stopped():
    assert made(RootDeviceType="instance-store").actions == RUNNING - {Capability.STOP}


def test_what_a_new_state_accepts_is_unknown():
    assert made(state="hibernating-since-2027").actions is None


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        ("available", ImageState.READY),
        ("pending", ImageState.PENDING),
        ("failed", ImageState.FAILED),
        ("a-word-of-2028", ImageState.UNKNOWN),
    ],
)
def test_images(raw, state):
    assert image_of({"ImageId": "ami-1", "State": raw}, "us-east-1").state is state
