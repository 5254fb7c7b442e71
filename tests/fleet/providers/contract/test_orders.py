"""Renting: the offer that was chosen, once, and found again whatever happened to the answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.providers.base import Capability, Market, OfferQuery, ProviderInstance
from fleet.providers.errors import Invalid, NoCapacity, PartialCreate, ProviderError, Unavailable
from fleet.providers.gpus import canonical
from fleet.providers.registry import adapters
from tests.fleet.providers.contract.cast import FAKES, each

CREATE, LIST, OFFERS = Capability.CREATE, Capability.LIST, Capability.OFFERS
TOKEN = "rr-0123456789abcdef"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIONOYN5lX/BJgVk4jeh+mDmAfPNagkAPKQktArupTWha alice"


def is_idempotent(kind: str) -> bool:
    return adapters()[kind].create_is_idempotent


def ordered_once(adapter, fake) -> bool:
    """One order was sent; or the same again, to a provider that makes one machine of all that have one token."""
    first, *more = [request.body for request in fake.asked("create")]
    again = type(adapter).create_is_idempotent and TOKEN in first.decode()
    return not more or (again and set(more) == {first})


def with_token(adapter) -> list[ProviderInstance]:
    """Machines in which the token can be seen."""
    machines = adapter.instances()
    return [
        machine
        for machine in machines
        if TOKEN in machine.name
        or TOKEN in " ".join(machine.labels.values())
        or machine.extra.get("client_token") == TOKEN
    ]


@each(CREATE)
def test_an_order_is_carried_out_and_found_by_its_token(adapter, fake):
    fake.seed(2)
    ref = adapter.create(fake.order(), TOKEN)
    fake.settle()
    assert [machine.ref for machine in with_token(adapter)] == [ref]


@each(CREATE)
def test_what_was_ordered_is_what_was_made(adapter, fake):
    ref = adapter.create(fake.order(), TOKEN)
    fake.settle()
    (machine,) = adapter.instances()
    known = fake.known_offer
    assert machine.ref == ref
    assert (machine.gpu_model, machine.gpu_count) == (known.gpu_model, known.gpu_count)


@each(CREATE)
def test_an_order_whose_answer_was_lost_is_found_by_its_token(adapter, fake):
    fake.lose_answer(on="create")
    with pytest.raises(Unavailable):
        adapter.create(fake.order(), TOKEN)
    fake.settle()
    assert len(with_token(adapter)) == 1
    assert ordered_once(adapter, fake)


@each(CREATE)
@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_order_is_never_sent_twice(adapter, fake, status):
    fake.refuse(status, on="create")
    with pytest.raises(ProviderError):
        adapter.create(fake.order(), TOKEN)
    assert ordered_once(adapter, fake)
    assert fake.machines == {}


@each(CREATE)
@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 429, 500])
def test_no_refusal_of_a_later_reading_undoes_an_order(adapter, fake, status):
    fake.refuse(status, following="create")
    try:
        ref = adapter.create(fake.order(), TOKEN)
    except PartialCreate as partial:
        ref = partial.ref
    assert ref.external_id in fake.machines


@each(CREATE)
@pytest.mark.parametrize("body", ["null", "[]", "{}", '{"surprise": 1}', "3"])
def test_an_order_whose_answer_is_nonsense_may_have_been_taken(adapter, fake, body):
    fake.garble_answer(body, on="create")
    with suppress(Unavailable):
        assert adapter.create(fake.order(), TOKEN).external_id in fake.machines
    fake.settle()
    assert len(with_token(adapter)) == 1


@each(CREATE)
def test_an_answer_that_names_no_machine_refuses_nothing(adapter, fake):
    fake.empty_answer(on="create")
    with suppress(Unavailable):
        assert adapter.create(fake.order(), TOKEN).external_id in fake.machines
    assert len(fake.machines) == 1


@pytest.mark.parametrize("fake", [kind for kind in FAKES if is_idempotent(kind)], indirect=True)
def test_who_keeps_the_token_of_an_order_makes_one_machine_of_two(adapter, fake):
    refs = {adapter.create(fake.order(), TOKEN) for _ in range(2)}
    fake.settle()
    assert [machine.ref for machine in with_token(adapter)] == list(refs)


@each(CREATE)
def test_a_sold_out_offer_is_want_of_capacity(adapter, fake):
    fake.sell_out()
    with pytest.raises(NoCapacity):
        adapter.create(fake.order(), TOKEN)
    assert fake.machines == {}


@each(CREATE, when=lambda fake: fake.answers_partially)
def test_an_error_that_names_a_machine_keeps_it(adapter, fake):
    fake.make_partially()
    with pytest.raises(PartialCreate) as partial:
        adapter.create(fake.order(), TOKEN)
    assert partial.value.ref.external_id in fake.machines


@each(CREATE)
def test_an_offer_that_does_not_exist_is_refused(adapter, fake):
    with pytest.raises(ProviderError):
        adapter.create(replace(fake.order(), offer_id="no-such-offer"), TOKEN)
    assert fake.machines == {}


@each(CREATE)
def test_no_field_of_the_order_is_dropped_without_a_word(adapter, fake):
    """A key, a script and labels are carried to the provider, or the order is refused; the script in whatever packing."""
    order = replace(fake.order(), ssh_public_key=PUBLIC_KEY, user_data="#!/bin/sh\necho hello\n")
    try:
        adapter.create(order, TOKEN)
    except Invalid:
        assert fake.machines == {}
        return
    writes = [request for _, request in fake.requests if request.method != "GET"]
    sent = " ".join(text for request in writes for text in (request.body.decode(), *request.query.values()))
    assert any(form in sent for form in ("AAAAC3Nza", "QUFBQUMzTnph"))
    assert any(form in sent for form in ("echo hello", "ZWNobyBoZWxsbw", "IyEvYmluL3NoCmVjaG8gaGVsbG8K"))


@each(CREATE)
@pytest.mark.parametrize("market", [Market.ON_DEMAND, Market.SPOT])
def test_a_limit_of_price_is_told_to_the_provider_or_refused(adapter, fake, market):
    try:
        adapter.create(replace(fake.order(), market=market, max_price_per_hour=Decimal("98.7654")), TOKEN)
    except Invalid:
        assert fake.machines == {}
        return
    (sent,) = fake.asked("create")
    assert "98.7654" in sent.body.decode() + " ".join(sent.query.values())


@each(CREATE)
@pytest.mark.parametrize("market", [Market.SPOT, Market.RESERVED])
def test_another_market_is_not_rented_on_demand(adapter, fake, market):
    with suppress(Invalid):
        adapter.create(replace(fake.order(), market=market), TOKEN)
    assert [machine.market for machine in adapter.instances()] in ([], [market])


@each(OFFERS)
def test_an_offers_price_is_for_the_whole_machine(adapter, fake):
    known = fake.known_offer
    offers = {(offer.external_id, offer.market): offer for offer in adapter.offers(OfferQuery())}
    offer = offers[known.external_id, known.market]
    assert (offer.gpu_model, offer.gpu_count, offer.price) == (known.gpu_model, known.gpu_count, known.price)


@each(OFFERS)
def test_offers_are_told_apart_and_in_our_words(adapter, fake):
    offers = list(adapter.offers(OfferQuery()))
    names = [(offer.external_id, offer.region, offer.market) for offer in offers]
    assert len(set(names)) == len(names)
    for offer in offers:
        assert offer.price is None or (isinstance(offer.price.amount, Decimal) and offer.price.amount > 0)
        assert offer.gpu_model == canonical(offer.gpu_model) or offer.gpu_raw
        assert offer.gpu_count is None or offer.gpu_count >= 0
        assert isinstance(offer.market, Market)


@each(OFFERS)
def test_a_narrower_question_keeps_what_fits_it(adapter, fake):
    known = fake.known_offer
    query = OfferQuery(gpu_model=known.gpu_model, gpu_count=known.gpu_count)
    assert known.external_id in {offer.external_id for offer in adapter.offers(query)}


@each(OFFERS)
@pytest.mark.parametrize("politely", [False, True], ids=["line breaks", "half a body"])
def test_offers_that_break_off_raise(adapter, fake, politely):
    fake.cut_listing("offers", politely=politely)
    with pytest.raises(Unavailable):
        list(adapter.offers(OfferQuery()))
