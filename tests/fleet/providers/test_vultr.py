"""Vultr's own ways, beyond the contract: slices of cards, bare metal in a list of its own, prices in plans, starts that restart."""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Capability, InstanceState, Market, Money, OfferQuery, Ref, Ssh, Tenancy
from fleet.providers.errors import Invalid, NotFound, WrongState
from fleet.providers.vultr import Vultr
from fleet.providers.vultr_facts import disk_gb, price_of

KIND, TOKEN = "vultr", "rr-0123456789abcdef"


@pytest.fixture
def metal(fake):
    row = fake.metal(fake.number())
    fake.metals[row["id"]] = row
    return Ref(row["id"], row["region"])


def test_whole_cards_are_counted_by_their_memory(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_model, machine.gpu_count, machine.gpu_memory_mib) == ("L40S", 2, 48 * 1024)
    assert machine.tenancy is Tenancy.DEDICATED_GPU
    assert machine.ssh == (Ssh("203.0.113.10"),)


def test_a_plan_with_less_memory_than_a_card_is_a_slice_of_one(adapter, fake):
    fake.add(fake.instance(fake.number(), "vcg-a100-1c-6g-4vram", "notebook", []))
    (machine,) = adapter.instances()
    assert machine.tenancy is Tenancy.FRACTION
    assert (machine.gpu_count, machine.gpu_memory_mib) == (1, 4 * 1024)
    assert machine.rate == Money(Decimal("0.123"), "USD")


def test_bare_metal_is_listed_beside_the_others(adapter, fake, metal):
    fake.seed()
    machines = {machine.ref: machine for machine in adapter.instances()}
    assert len(machines) == 2
    machine = machines[metal]
    assert (machine.gpu_model, machine.gpu_count) == ("H100 SXM", 8)
    assert (machine.tenancy, machine.host_share) == (Tenancy.DEDICATED_HOST, 1)
    assert (machine.ram_mib, machine.vcpus) == (2_097_152, 224)
    assert machine.rate == Money(Decimal("23.92"), "USD")
    assert (machine.state, machine.created_at.tzinfo is None) == (InstanceState.RUNNING, False)


def test_bare_metal_is_found_and_ended_by_its_id_alone(adapter, fake, metal):
    assert adapter.instance(metal).extra["bare_metal"] is True
    adapter.reboot(metal)
    adapter.terminate(metal)
    assert fake.metals == {}
    assert [request.path for request in fake.asked("terminate")] == [f"/v2/bare-metals/{metal.external_id}"]


def test_no_image_is_made_of_bare_metal(adapter, fake, metal):
    with pytest.raises(WrongState, match="bare metal"):
        adapter.save_image(metal, "vision")
    assert fake.asked("save_image") == []


def test_bare_metal_is_ordered_where_it_is_sold(adapter, fake):
    ref = adapter.create(replace(fake.order(), offer_id="vbm-112c-2048gb-8-h100-gpu"), TOKEN)
    assert ref.external_id in fake.metals
    assert adapter.instance(ref).labels["rackrent"] == TOKEN


def test_what_runs_is_not_started_again(adapter, fake):
    """Vultr restarts a machine that is started while it runs."""
    (ref,) = fake.seed()
    adapter.start(ref)
    assert fake.asked("start") == []


def test_halted_costs_as_much_as_running(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="stopped")
    machine = adapter.instance(ref)
    assert (machine.state, machine.billing, machine.rate) == (InstanceState.STOPPED, Billing.FULL, fake.price)
    assert Capability.STOP not in Vultr.capabilities


def test_a_plan_without_a_price_by_the_hour_is_reckoned_from_the_month():
    assert price_of({"monthly_cost": 672}) == Money(Decimal(1), "USD")
    assert price_of({"monthly_cost": 672, "hourly_cost": 0.9}) == Money(Decimal("0.9"), "USD")
    assert price_of({}) is None


@pytest.mark.parametrize(
    ("written", "gb"),
    [(80, 80), ("2x 1.9TB NVMe, 6x 3.8TB NVMe", 26_600), ("2x 240 GB SSD", 480), ("", None), (None, None)],
)
def test_disks_however_they_are_written(written, gb):
    assert disk_gb(written) == gb


@pytest.mark.parametrize(
    ("image", "field"),
    [("2284", "os_id"), ("5359435d-28b9-4dfb-b839-000000000001", "snapshot_id"), ("nvidia-ai", "image_id")],
)
def test_an_image_goes_where_its_kind_belongs(adapter, fake, image, field):
    adapter.create(replace(fake.order(), image_id=image, user_data="#!/bin/sh\n"), TOKEN)
    (order,) = (request.json for request in fake.asked("create"))
    assert str(order[field]) == image
    assert base64.b64decode(order["user_data"]) == b"#!/bin/sh\n"


@pytest.mark.parametrize(
    "wish", [{"disk_gb": 500}, {"max_price_per_hour": Decimal(1)}, {"market": Market.SPOT}, {"image_id": ""}]
)
def test_a_wish_that_cannot_be_met_is_refused_and_not_dropped(adapter, fake, wish):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **wish), TOKEN)
    assert fake.machines == {}


def test_offers_hold_slices_cards_and_bare_metal(adapter):
    offers = {(offer.external_id, offer.region): offer for offer in adapter.offers(OfferQuery())}
    assert offers["vcg-a100-1c-6g-4vram", "fra"].tenancy is Tenancy.FRACTION
    assert offers["vbm-112c-2048gb-8-h100-gpu", "fra"].gpu_interconnect == "nvlink"
    assert all(offer.available is None for offer in offers.values())


def test_what_is_nowhere_cannot_be_started(adapter):
    with pytest.raises(NotFound):
        adapter.start(Ref("cb676a46-ffff-4dfb-b839-000000000001"))
