"""Listing machines: all pages, every state, whatever is missing, and nothing rather than a part."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Capability, InstanceState, Money, ProviderInstance
from fleet.providers.errors import ProviderError, Unavailable
from tests.fleet.providers.contract.cast import each, each_with

LIST, FIND = Capability.LIST, Capability.FIND


def listed(adapter) -> dict[str, ProviderInstance]:
    return {machine.ref.external_id: machine for machine in adapter.instances()}


@each(LIST)
def test_an_empty_account_is_an_empty_listing(adapter, fake):
    assert list(adapter.instances()) == []


@each(LIST)
def test_one_machine_is_told_in_full(adapter, fake):
    (ref,) = fake.seed()
    (machine,) = adapter.instances()
    assert machine.ref == ref
    assert machine.name
    assert machine.raw_state
    assert (machine.state, machine.billing) == (InstanceState.RUNNING, Billing.FULL)
    assert machine.gpu_count
    assert machine.gpu_model
    assert machine.rate == fake.price
    assert fake.price is None or isinstance(machine.rate.amount, Decimal)
    assert all(moment is None or moment.tzinfo for moment in (machine.created_at, machine.started_at))


@each(LIST)
def test_all_pages_are_read_and_each_machine_once(adapter, fake):
    refs = fake.seed(fake.many)
    found = [machine.ref for machine in adapter.instances()]
    assert len(found) == len(refs)
    assert set(found) == set(refs)


@each_with(lambda kind, fake: list(fake.states), "raw_state")
def test_every_raw_state_has_its_meaning(adapter, fake, raw_state):
    (ref,) = fake.seed()
    fake.show(ref, raw_state=raw_state)
    (machine,) = adapter.instances()
    means = fake.states[raw_state]
    assert (machine.state, machine.billing) == (means.state, means.billing)
    assert machine.raw_state


@each(LIST)
def test_a_state_invented_tomorrow_is_unknown_and_stops_nothing(adapter, fake):
    odd, plain = fake.seed(2)
    fake.show(odd, raw_state="quantum-entangled")
    machines = listed(adapter)
    assert machines[odd.external_id].state is InstanceState.UNKNOWN
    assert machines[odd.external_id].billing is Billing.UNKNOWN
    assert machines[plain.external_id].state is InstanceState.RUNNING


@each(LIST, when=lambda fake: "address" in fake.can_lack)
def test_a_machine_without_an_address_has_none(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, without={"address"})
    (machine,) = adapter.instances()
    assert machine.ssh == ()


@each(LIST, when=lambda fake: "price" in fake.can_lack)
def test_a_machine_without_a_price_is_unpriced_and_not_free(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, without={"price"})
    (machine,) = adapter.instances()
    assert machine.rate is None


@each(LIST, when=lambda fake: "gpu" in fake.can_lack)
def test_a_machine_without_a_gpu_is_listed(adapter, fake):
    (ref,) = fake.seed()
    fake.show(ref, without={"gpu"})
    (machine,) = adapter.instances()
    assert not machine.gpu_count
    assert machine.gpu_model == ""


@each(LIST)
@pytest.mark.parametrize("politely", [False, True], ids=["line breaks", "half a body"])
def test_a_listing_cut_in_the_middle_raises(adapter, fake, politely):
    fake.seed(fake.many)
    fake.cut_listing(politely=politely)
    with pytest.raises(Unavailable):
        list(adapter.instances())


@each(LIST)
def test_a_later_page_that_fails_raises(adapter, fake):
    fake.seed(fake.many)
    list(adapter.instances())
    pages = len(fake.asked("list"))
    fake.refuse(500, on="list", after=pages - 1)
    with pytest.raises(ProviderError):
        list(adapter.instances())


@each(LIST, FIND)
def test_a_single_machine_is_found_as_it_is_listed(adapter, fake):
    first, _ = fake.seed(2)
    found = adapter.instance(first)
    listing = listed(adapter)[first.external_id]
    assert (found.ref, found.name, found.state, found.billing) == (first, listing.name, listing.state, listing.billing)
    assert (found.rate, found.gpu_model, found.gpu_count) == (listing.rate, listing.gpu_model, listing.gpu_count)


@each(LIST, FIND)
def test_a_machine_that_the_provider_does_not_know_is_none(adapter, fake):
    (ref,) = fake.seed()
    fake.machines.clear()
    assert adapter.instance(ref) is None


@each(LIST, FIND)
@pytest.mark.parametrize("body", [b"<html>404 page not found</html>", b""], ids=["HTML", "nothing"])
def test_a_gateways_404_is_no_proof_that_a_machine_is_gone(adapter, fake, body):
    (ref,) = fake.seed()
    fake.refuse(404, body)
    with pytest.raises(ProviderError):
        adapter.instance(ref)


@each(LIST, FIND)
@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_a_read_that_fails_is_no_proof_that_a_machine_is_gone(adapter, fake, status):
    (ref,) = fake.seed()
    fake.refuse(status)
    with pytest.raises(ProviderError):
        adapter.instance(ref)


@each(LIST)
def test_what_a_stopped_machine_costs_is_known_or_unknown_and_never_everything(adapter, fake):
    (ref,) = fake.seed()
    for raw_state, means in fake.states.items():
        if means.billing is not Billing.STORAGE:
            continue
        fake.show(ref, raw_state=raw_state)
        (machine,) = adapter.instances()
        rate = machine.storage_rate
        assert rate is None or (isinstance(rate, Money) and rate.amount >= 0)
        assert rate is None or fake.price is None or rate.amount < fake.price.amount


@each(LIST, when=lambda fake: fake.measures)
def test_what_the_provider_measures_is_kept(adapter, fake):
    (ref,) = fake.seed()
    fake.measure(ref, gpu_percent=87)
    metrics = getattr(adapter, "metrics", None)
    (machine,) = adapter.instances()
    usage = next(iter(metrics([ref]))) if metrics else machine.usage
    assert usage is not None
    assert usage.ref == ref
    assert 87.0 in usage.gpu_utilization_percent
