"""Vast.ai's own ways, beyond the contract: what four status fields mean together, bids, shares of hosts, refusals that succeed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.providers.base import InstanceState, Market, Money, OfferQuery, Ref, Ssh, Tenancy
from fleet.providers.errors import Invalid, NoCapacity, NotFound, PartialCreate, QuotaOrFunds, RateLimited, Unavailable
from fleet.providers.vast_market import MAX_START_CHARS

KIND = "vast"
TOKEN = "rr-0123456789abcdef"


@pytest.fixture
def vast(fake):
    return fake


@pytest.fixture
def row(vast):
    (ref,) = vast.seed()
    return vast.machines[ref.external_id]


def only(adapter):
    (machine,) = adapter.instances()
    return machine


def test_a_machine_in_our_words(adapter, row):
    machine = only(adapter)
    assert (machine.gpu_model, machine.gpu_count, machine.gpu_memory_mib) == ("RTX 4090", 2, 24564)
    assert (machine.market, machine.tenancy, machine.host_share) == (
        Market.ON_DEMAND,
        Tenancy.COMMUNITY_HOST,
        Decimal("0.25"),
    )
    assert machine.ssh == (Ssh("192.0.2.5", 20022), Ssh("ssh5.vast.ai", 10312, kind="proxy"))
    assert machine.expires_at == datetime(2026, 2, 2, 2, 40, tzinfo=UTC)
    assert machine.storage_rate == Money(Decimal("0.01"), "USD")
    assert machine.extra["verification"] == "verified"
    assert machine.usage.memory_percent == 25.0


def test_memory_is_the_share_that_goes_with_the_cores(adapter, row):
    machine = only(adapter)
    assert (machine.vcpus, machine.ram_mib) == (16, 515000 // 4)


def test_a_whole_host_is_the_renters_alone(adapter, row):
    row["gpu_frac"] = 1.0
    assert only(adapter).tenancy is Tenancy.DEDICATED_HOST


def test_a_stopped_machine_costs_what_the_host_takes_for_a_stopped_one(adapter, vast, row):
    vast.put_state(row, "stopped")
    assert only(adapter).storage_rate == Money(Decimal("0.02"), "USD")


def test_an_outbid_machine_says_so(adapter, vast, row):
    vast.put_state(row, "stopped")
    row |= {"is_bid": True, "min_bid": 0.9, "dph_base": 0.8}
    machine = only(adapter)
    assert (machine.market, machine.state) == (Market.SPOT, InstanceState.STOPPED)
    assert machine.state_reason == "Outbid: the lowest bid is now 0.9 USD an hour, this one is 0.8."


def test_a_bid_that_its_renter_stopped_is_not_called_outbid(adapter, vast, row):
    vast.put_state(row, "stopped")
    row |= {"is_bid": True, "min_bid": 0.4, "dph_base": 0.8}
    assert only(adapter).state_reason == "success, running"


def test_a_bid_is_for_the_whole_machine_and_needs_a_limit(adapter, vast):
    order = replace(vast.order(), market=Market.SPOT, max_price_per_hour=Decimal("0.42"))
    adapter.create(order, TOKEN)
    assert vast.asked("create")[0].json["price"] == 0.42
    assert only(adapter).market is Market.SPOT
    with pytest.raises(Invalid, match="most that an hour"):
        adapter.create(replace(order, max_price_per_hour=None), TOKEN)


def test_an_order_at_the_asked_price_is_no_bid_and_is_cancelled_rather_than_stopped(adapter, vast):
    adapter.create(vast.order(), TOKEN)
    sent = vast.asked("create")[0].json
    assert "price" not in sent
    assert sent["cancel_unavail"] is True


def test_a_script_that_is_too_long_is_refused_before_anything_is_rented(adapter, vast):
    with pytest.raises(Invalid, match=f"of {MAX_START_CHARS} characters"):
        adapter.create(replace(vast.order(), user_data="x" * MAX_START_CHARS), TOKEN)
    assert vast.requests == []


def test_no_image_is_refused(adapter, vast):
    with pytest.raises(Invalid, match="needs an image"):
        adapter.create(replace(vast.order(), image_id=""), TOKEN)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"success": False, "error": "insufficient_credit", "msg": "Top up."}, QuotaOrFunds),
        ({"success": False, "error": "no_such_ask", "msg": "Gone."}, NoCapacity),
        ({"success": False, "error": "what_else", "msg": "No."}, Invalid),
        ({"success": False, "error": "bid", "msg": "Too low.", "new_contract": 5}, PartialCreate),
        ({"success": True}, Unavailable),
    ],
)
def test_a_refusal_with_a_status_of_success_is_a_refusal(adapter, vast, body, error):
    vast.refuse(200, json.dumps(body).encode(), {"Content-Type": "application/json"}, on="create")
    with pytest.raises(error):
        adapter.create(vast.order(), TOKEN)


@pytest.mark.parametrize("status", [404, 410])
def test_an_ask_that_is_gone_is_want_of_capacity(adapter, vast, status):
    vast.refuse(status, json.dumps({"success": False, "error": "not_found", "msg": "Gone."}).encode(), on="create")
    with pytest.raises(NoCapacity, match="Gone"):
        adapter.create(vast.order(), TOKEN)


def test_a_partial_create_names_the_machine(adapter, vast):
    vast.make_partially()
    with pytest.raises(PartialCreate) as partial:
        adapter.create(vast.order(), TOKEN)
    assert partial.value.ref == Ref("301")
    assert partial.value.detail == "too low"


def test_the_quota_of_searches_ends_at_midnight_and_is_no_crash(adapter, vast):
    vast.refuse(429, b'{"error": "search_quota_exceeded"}', on="offers")
    with pytest.raises(RateLimited) as limited:
        list(adapter.offers(OfferQuery()))
    assert (limited.value.detail, limited.value.retry_after) == ("search_quota_exceeded", None)


def test_offers_of_both_markets(adapter):
    offers = {(offer.external_id, offer.market): offer for offer in adapter.offers(OfferQuery())}
    ask, bid = offers["4711", Market.ON_DEMAND], offers["4711", Market.SPOT]
    assert (ask.price, bid.price) == (Money(Decimal("0.81"), "USD"), Money(Decimal("0.42"), "USD"))
    assert (ask.disk_kind, ask.gpu_interconnect, ask.internet_down_mbps) == ("nvme", "pcie", 900.5)
    host = offers["4712", Market.ON_DEMAND]
    assert (host.gpu_model, host.gpu_interconnect, host.tenancy) == ("H100 SXM", "nvlink", Tenancy.DEDICATED_HOST)
    assert ask.storage_price_per_gb_month == Money(Decimal("0.15"), "USD")


def test_one_market_is_asked_for_alone(adapter, vast):
    list(adapter.offers(OfferQuery(market=Market.SPOT)))
    assert [request.json["type"] for request in vast.asked("offers")] == ["bid"]


def test_pages_that_do_not_end_are_unavailable(adapter, vast):
    page = {"success": True, "instances": [], "next_token": "again"}
    vast.refuse(200, json.dumps(page).encode(), {"Content-Type": "application/json"}, on="list")
    with pytest.raises(Unavailable, match="does not end"):
        list(adapter.instances())


def test_pages_that_hold_fewer_than_they_count_are_unavailable(adapter, vast, row):
    page = {"success": True, "instances": [row], "total_instances": 2, "next_token": None}
    vast.refuse(200, json.dumps(page).encode(), {"Content-Type": "application/json"}, on="list")
    with pytest.raises(Unavailable, match="counts 2 rows and lists 1"):
        list(adapter.instances())


def test_another_machine_than_was_asked_for_is_no_answer(adapter, vast, row):
    page = {"success": True, "instances": [row], "next_token": None}
    vast.refuse(200, json.dumps(page).encode(), {"Content-Type": "application/json"}, on="list")
    with pytest.raises(Unavailable, match="another machine"):
        adapter.instance(Ref("7"))


@pytest.mark.parametrize("act", ["start", "stop", "reboot", "instance"])
def test_what_is_no_number_is_no_machine(adapter, act):
    with pytest.raises(NotFound):
        getattr(adapter, act)(Ref("../users"))


def test_verify_tells_the_account_and_what_the_key_lacks(adapter, vast):
    assert adapter.verify().external_id == "9"
    vast.refuse(403, on="balance")
    assert adapter.verify().lacks == ("user_read",)
