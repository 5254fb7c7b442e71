"""Verda's own ways, beyond the contract: tokens, two markets, bare ids, volumes and the trash, hibernation that is none."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers import tokens
from fleet.providers.base import Billing, Capability, InstanceState, Market, Money, OfferQuery, Tenancy
from fleet.providers.errors import AuthFailed, Invalid, QuotaOrFunds
from fleet.providers.verda import Verda
from tests.fleet.providers.fakes.server import Answer, told
from tests.fleet.providers.fakes.verda import EIGHT, ONE

KIND, TOKEN = "verda", "rr-0123456789abcdef"


def test_a_machine_in_our_words(adapter, fake):
    fake.seed()
    (machine,) = adapter.instances()
    assert (machine.gpu_raw, machine.gpu_model, machine.gpu_count) == ("H100 SXM5 80GB", "H100 SXM", 8)
    assert machine.gpu_memory_mib == 80 * 1024
    assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_GPU)
    assert (machine.vcpus, machine.ram_mib) == (176, 1480 * 1024)
    assert machine.labels == {"description": "vision team"}


def test_a_spot_machine_says_so(adapter, fake):
    fake.add(fake.machine(fake.number(), ONE, "probe", "", spot=True))
    (machine,) = adapter.instances()
    assert (machine.market, machine.gpu_model) == (Market.SPOT, "A100 SXM 40 GB")


def test_one_token_serves_many_calls(adapter, fake):
    list(adapter.instances())
    list(adapter.images())
    assert fake.tokens == 1


def test_a_token_is_fetched_anew_before_it_ends(adapter, fake, monkeypatch):
    monkeypatch.setattr(tokens, "MARGIN_SECONDS", 3600.0)
    list(adapter.instances())
    list(adapter.instances())
    assert fake.tokens == 2


def test_a_client_that_oauth_does_not_know_is_a_wrong_key(adapter, fake, monkeypatch):
    monkeypatch.setattr(fake, "token", lambda request: told({"error": "invalid_client"}, 400))
    monkeypatch.setattr(fake, "held_to_description", False)
    with pytest.raises(AuthFailed):
        adapter.verify()


def test_each_market_is_asked_for_its_free_machines(adapter, fake):
    offers = {(offer.external_id, offer.market): offer for offer in adapter.offers(OfferQuery())}
    assert [request.query["isSpot"] for request in fake.asked("availability")] == ["false", "true"]
    assert (offers[EIGHT, Market.ON_DEMAND].region, offers[EIGHT, Market.SPOT].region) == ("FIN-01", "FIN-02")
    assert offers[EIGHT, Market.SPOT].price == Money(Decimal("6.44"), "USD")
    nowhere = offers[ONE, Market.ON_DEMAND]
    assert (nowhere.available, nowhere.region) == (False, "")
    assert "CPU.4V.16G" not in {name for name, _ in offers}


@pytest.mark.parametrize("quoted", [True, False], ids=["JSON", "plain text"])
def test_the_answer_to_an_order_is_the_bare_id(adapter, fake, monkeypatch, quoted):
    made = fake.create

    def bare(request):
        answer = made(request)
        return answer if quoted else Answer(answer.status, answer.body.strip(b'"'), {"Content-Type": "text/plain"})

    monkeypatch.setattr(fake, "create", bare)
    fake.held_to_description = False
    ref = adapter.create(fake.order(), TOKEN)
    assert ref.external_id in fake.machines


def test_an_order_carries_market_disk_script_and_token(adapter, fake):
    order = replace(
        fake.order(), market=Market.SPOT, disk_gb=200, user_data="#!/bin/sh\n", labels={"team": "ml"}, name="My Run"
    )
    ref = adapter.create(order, TOKEN)
    (sent,) = (request.json for request in fake.asked("create"))
    assert (sent["is_spot"], sent["hostname"]) == (True, "my-run")
    assert sent["os_volume"]["size"] == 200
    assert sent["startup_script_id"] == fake.scripts[0]["id"]
    assert adapter.instance(ref).labels == {"rackrent": TOKEN, "team": "ml"}


def test_an_order_without_an_image_is_refused(adapter, fake):
    with pytest.raises(Invalid, match="image"):
        adapter.create(replace(fake.order(), image_id=""), TOKEN)
    assert fake.asked("create") == []


def test_the_end_takes_the_system_volume_and_no_other(adapter, fake):
    """Into the trash, from where it can be brought back: never for good."""
    (ref,) = fake.seed()
    adapter.terminate(ref)
    (sent,) = (request.json for request in fake.asked("terminate"))
    assert sent["volume_ids"] == ["v-1"]
    assert "delete_permanently" not in sent


def test_offline_is_billed_in_full_and_there_is_no_stop(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, raw_state="offline")
    machine = adapter.instance(ref)
    assert (machine.state, machine.billing, machine.rate) == (InstanceState.STOPPED, Billing.FULL, fake.price)
    assert Capability.STOP not in Verda.capabilities
    assert not Verda.semantics.can_stop


@pytest.mark.parametrize(("raw_state", "action"), [("offline", "start"), ("hibernating", "restore")])
def test_a_start_does_what_the_state_needs(adapter, fake, raw_state, action):
    (ref,) = fake.seed()
    fake.show(ref, raw_state=raw_state)
    adapter.start(ref)
    assert [request.json["action"] for request in fake.asked("start")] == [action]


def test_an_order_for_which_the_money_is_missing(adapter, fake):
    fake.refuse(402, on="create")
    with pytest.raises(QuotaOrFunds):
        adapter.create(fake.order(), TOKEN)
