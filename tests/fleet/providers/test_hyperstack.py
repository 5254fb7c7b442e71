"""Hyperstack's own ways, beyond the contract: GETs that act, stops that hibernate, prices in a book, snapshots that come back whole."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, InstanceState, Market, Money, OfferQuery, Ssh, Tenancy
from fleet.providers.errors import Invalid, Unavailable, WrongState
from tests.fleet.providers.fakes.server import told

KIND, TOKEN = "hyperstack", "rr-0123456789abcdef"


def test_a_machine_in_our_words(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_raw, machine.gpu_model, machine.gpu_count) == ("H100-80G-PCIe", "H100 PCIe", 2)
    assert (machine.gpu_memory_mib, machine.disk_gb) == (80 * 1024, 1600)
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert machine.ssh == (Ssh("203.0.113.5", user="ubuntu"),)
    assert machine.created_at.tzinfo


def test_a_stop_hibernates_and_keeps_the_address(adapter, fake):
    (ref,) = fake.seed()
    adapter.stop(ref)
    assert [request.query for request in fake.asked("stop")] == [{"retain_ip": "true"}]
    assert fake.asked("shut_off") == []
    fake.settle()
    machine = adapter.instance(ref)
    assert (machine.raw_state, machine.billing) == ("HIBERNATED", Billing.STORAGE)


@pytest.mark.parametrize(
    ("act", "state", "name"),
    [("stop", "ACTIVE", "stop"), ("start", "SHUTOFF", "start"), ("start", "HIBERNATED", "restore")],
)
@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_get_that_acts_is_never_sent_twice(adapter, fake, act, state, name, status):
    """Reads are tried again when a gateway answers; these only look like reads."""
    (ref,) = fake.seed()
    fake.show(ref, raw_state=state)
    fake.refuse(status, on=name)
    with pytest.raises(Unavailable):
        getattr(adapter, act)(ref)
    assert len(fake.asked(name)) == 1


def test_shut_off_is_billed_in_full_and_a_stop_says_what_to_do(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="SHUTOFF")
    assert (adapter.instance(ref).state, adapter.instance(ref).billing) == (InstanceState.STOPPED, Billing.FULL)
    with pytest.raises(WrongState, match="start it first"):
        adapter.stop(ref)
    assert fake.asked("stop") == []


def test_a_start_does_what_the_state_needs(adapter, fake):
    off, asleep, running = fake.seed(3)
    fake.show(off, raw_state="SHUTOFF")
    fake.show(asleep, raw_state="HIBERNATED")
    for ref in (off, asleep, running):
        adapter.start(ref)
    assert [request.path.rsplit("/", 2)[1:] for request in fake.asked("start")] == [[off.external_id, "start"]]
    assert [request.path.rsplit("/", 2)[1] for request in fake.asked("restore")] == [asleep.external_id]


def test_a_refusal_that_comes_with_200_is_one(adapter, fake, monkeypatch):
    monkeypatch.setattr(
        fake, "hibernate", lambda request, _: told({"status": False, "message": "This flavor cannot hibernate."})
    )
    (ref,) = fake.seed()
    with pytest.raises(Invalid, match="cannot hibernate"):
        adapter.stop(ref)


def test_spot_is_told_by_the_flavors_gpu(adapter, fake):
    fake.add(fake.machine(fake.number(), "probe", "n3-H100x2-spot", []))
    (machine,) = adapter.instances()
    assert (machine.market, machine.gpu_model) == (Market.SPOT, "H100 PCIe")
    assert machine.rate == Money(Decimal("3.04"), "USD")


def test_a_contract_makes_it_reserved(adapter, fake):
    (ref,) = fake.seed()
    fake.machines[ref.external_id]["contract_id"] = 7
    assert adapter.instance(ref).market is Market.RESERVED


def test_offers_have_the_price_of_all_gpus_and_the_stock(adapter):
    offers = {offer.external_id: offer for offer in adapter.offers(OfferQuery())}
    assert (offers["n3-H100x2"].available, offers["n3-H100x2-spot"].available) == (True, False)
    assert offers["n3-H100x2-spot"].price == Money(Decimal("3.04"), "USD")
    assert offers["n3-H100x2"].gpu_interconnect == "pcie"


def test_an_order_goes_to_the_environment_of_its_region(adapter, fake):
    ref = adapter.create(replace(fake.order(), labels={"team": "ml"}), TOKEN)
    (sent,) = (request.json for request in fake.asked("create"))
    assert (sent["environment_name"], sent["key_name"], sent["name"]) == ("default-CANADA-1", TOKEN, "train")
    machine = adapter.instance(ref)
    assert machine.labels == {"rackrent": TOKEN, "team": "ml"}
    assert machine.extra["client_token"] == TOKEN
    with pytest.raises(Invalid, match="no environment in NORWAY-1"):
        adapter.create(replace(fake.order(), region="NORWAY-1"), TOKEN)


def test_a_key_that_is_there_is_not_added_again(adapter, fake):
    for number in (1, 2):
        adapter.create(fake.order(), f"rr-000000000000000{number}")
    assert len(fake.asked("add_key")) == 1
    assert {request.json["key_name"] for request in fake.asked("create")} == {"rr-0000000000000001"}


@pytest.mark.parametrize(
    "wish", [{"disk_gb": 500}, {"max_price_per_hour": Decimal(1)}, {"image_id": ""}, {"ssh_public_key": ""}]
)
def test_a_wish_that_cannot_be_met_is_refused_and_not_dropped(adapter, fake, wish):
    with pytest.raises(Invalid):
        adapter.create(replace(fake.order(), **wish), TOKEN)
    assert fake.machines == {}


def test_a_snapshot_comes_back_as_what_it_was(adapter, fake):
    (image_id,) = fake.seed_images(1)
    ref = adapter.create(replace(fake.order(), image_id=image_id), TOKEN)
    assert adapter.instance(ref).name == f"train-{TOKEN}"
    with pytest.raises(Invalid, match="n3-H100x2"):
        adapter.create(replace(fake.order(), image_id=image_id, offer_id="n3-H100x8"), TOKEN)
