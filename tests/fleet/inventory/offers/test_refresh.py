"""Live offers: complete or the former ones stay, failing accounts delay no other, hostile values become unknown."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.inventory.accounts import create_account
from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers import tasks
from fleet.inventory.offers.models import Offer, OfferSource
from fleet.inventory.offers.refresh import (
    claim_due_sources,
    claim_source,
    ensure_sources,
    forget_disconnected,
    refresh_source,
)
from fleet.inventory.poll import being_read
from fleet.providers.base import Capability, Market, Money, Tenancy
from fleet.providers.errors import RateLimited, Unavailable
from fleet.providers.offers import Offer as ProviderOffer
from fleet.teams.audit import Actor
from tests.fleet.inventory.conftest import NOON, SECRET


def rented(ref: str = "big", **fields: object) -> ProviderOffer:
    values: dict[str, object] = {"instance_type": "big", "gpu_raw": "NVIDIA H100 PCIe", "gpu_count": 2, **fields}
    return ProviderOffer(external_id=ref, **values)  # type: ignore[arg-type]


@pytest.fixture
def market(provider, monkeypatch):
    """The scripted provider with offers: the test fills `market.shown`; `market.fails` is raised after them."""

    def offers(self, query):
        yield from provider.shown
        if provider.fails:
            raise provider.fails

    monkeypatch.setattr(provider, "offers", offers, raising=False)
    monkeypatch.setattr(provider, "shown", [rented()], raising=False)
    monkeypatch.setattr(provider, "fails", None, raising=False)
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.OFFERS, Capability.CREATE})
    with time_machine.travel(NOON, tick=False):
        yield provider


@pytest.fixture
def source(market, lab):
    ensure_sources()
    return OfferSource.objects.get(account=lab)


def refresh(source, *, now=NOON):
    source.refresh_from_db()
    claim = claim_source(source.pk, seen_next_at=source.next_at, now=now)
    assert claim
    source.refresh_from_db()
    count = refresh_source(source=source, now=now)
    source.refresh_from_db()
    return count


def test_an_account_gets_one_source_and_only_where_there_are_offers(market, lab, account):
    assert ensure_sources() == 1
    assert ensure_sources() == 0
    assert OfferSource.objects.get().account == lab


def test_offers_are_stored_with_our_name_of_the_gpu(source, market):
    market.shown = [
        rented(
            price=Money(Decimal("4.5"), "USD"),
            region="eu-1",
            market=Market.SPOT,
            tenancy=Tenancy.DEDICATED_GPU,
            vcpus=32,
        )
    ]
    assert refresh(source) == 1
    offer = Offer.objects.get()
    assert (offer.gpu_model, offer.price_per_hour, offer.currency) == ("H100 PCIe", Decimal("4.5"), "USD")
    assert (offer.provider, offer.region, offer.market, offer.seen_at) == ("scripted", "eu-1", "spot", NOON)
    assert (source.read_at, source.failures, source.claimed_at) == (NOON, 0, None)
    assert source.next_at >= NOON + timedelta(seconds=source.interval_seconds)


def test_an_offer_that_stays_keeps_its_id_and_one_that_goes_is_gone(source, market):
    market.shown = [rented("stays"), rented("goes")]
    refresh(source)
    kept = Offer.objects.get(external_id="stays").pk
    market.shown = [rented("stays", price=Money(Decimal(9), "USD"))]
    refresh(source, now=NOON + timedelta(hours=1))
    assert [(offer.pk, offer.price_per_hour) for offer in Offer.objects.all()] == [(kept, Decimal(9))]


def test_a_list_that_breaks_off_changes_nothing(source, market):
    refresh(source)
    market.shown, market.fails = [rented("new")], Unavailable(f"500 for {SECRET}")
    assert refresh(source, now=NOON + timedelta(hours=1)) is None
    assert Offer.objects.get().external_id == "big"
    assert (source.read_at, source.failures, source.error_kind) == (NOON, 1, "unavailable")
    assert SECRET not in source.error_detail


def test_a_failing_account_is_asked_less_often_and_not_before_it_allows(source, market):
    market.fails = RateLimited("slow down", retry_after=7200)
    refresh(source)
    assert source.next_at >= NOON + timedelta(seconds=7200)


def test_a_bug_of_an_adapter_is_a_failure_like_any_other(source, market, caplog):
    market.fails = KeyError("price")
    assert refresh(source) is None
    assert source.error_kind == "unavailable"
    assert "adapter failed" in caplog.text


def test_who_lost_the_claim_writes_nothing(source, market):
    claim_source(source.pk, seen_next_at=source.next_at, now=NOON)
    source.refresh_from_db()
    OfferSource.objects.filter(pk=source.pk).update(claimed_at=NOON + timedelta(minutes=5))
    assert refresh_source(source=source, now=NOON) is None
    assert not Offer.objects.exists()


def test_of_two_beats_one_gets_a_source(source):
    assert claim_source(source.pk, seen_next_at=source.next_at, now=NOON)
    assert claim_source(source.pk, seen_next_at=source.next_at, now=NOON) is None
    assert claim_due_sources(now=NOON, at_once=5) == []


@pytest.mark.parametrize(
    "state", [{"failures": 1}, {"poll_started_at": NOON, "next_poll_at": NOON + timedelta(minutes=2)}]
)
def test_an_account_that_hangs_does_not_hold_a_second_place(source, lab, state):
    ProviderAccount.objects.filter(pk=lab.pk).update(**state)
    assert claim_due_sources(now=NOON, at_once=2) == []
    ProviderAccount.objects.filter(pk=lab.pk).update(failures=0, next_poll_at=NOON)
    assert len(claim_due_sources(now=NOON, at_once=2)) == 1


def test_listings_and_offers_share_the_places(source, lab):
    """A list of another account is being read."""
    reading = {"poll_started_at": NOON, "next_poll_at": NOON + timedelta(minutes=2)}
    ProviderAccount.objects.create(team=lab.team, kind="scripted", name="Other", **reading)
    assert claim_due_sources(now=NOON, at_once=1) == []
    assert len(claim_due_sources(now=NOON, at_once=2)) == 1
    assert being_read(now=NOON) == 2


def test_a_disconnected_account_leaves_no_offers(source, lab):
    refresh(source)
    assert forget_disconnected() == 0
    lab.disconnected_at = NOON
    lab.save()
    assert forget_disconnected() == 1
    assert not Offer.objects.exists()
    assert ensure_sources() == 0


def test_paused_accounts_are_not_asked(source, lab):
    lab.enabled = False
    lab.save()
    assert claim_due_sources(now=NOON, at_once=5) == []


def test_every_account_is_a_task_of_its_own(acme, alice, source, market, settings, monkeypatch):
    """The broken one fails alone; the other is read in the same round."""
    second = create_account(
        actor=Actor(alice, "alice", "page"), team=acme, kind="scripted", name="Second", values={"key": SECRET}
    )
    settings.POLLS_AT_ONCE = 2
    sent = []
    monkeypatch.setattr(tasks.refresh_offers, "apply_async", lambda args, **_options: sent.append(args))
    assert tasks.dispatch_offers() == 2
    market.fails = Unavailable("down")
    tasks.refresh_offers(*sent[0])
    market.fails = None
    tasks.refresh_offers(*sent[1])
    assert sorted(OfferSource.objects.exclude(account=None).values_list("failures", flat=True)) == [0, 1]
    assert Offer.objects.filter(source__account__in=[second, source.account]).count() == 1


def test_values_that_cannot_be_become_unknown(source, market):
    market.shown = [
        rented(
            "odd",
            price=Money(Decimal("NaN"), "USD"),
            gpu_raw="x" * 5000,
            vcpus=-4,
            internet_down_mbps=float("inf"),
            reliability=7.0,
            region="eu\x00\x1b[31m",
        )
    ]
    refresh(source)
    offer = Offer.objects.get()
    assert (offer.price_per_hour, offer.vcpus, offer.internet_down_mbps, offer.reliability) == (None, None, None, None)
    assert len(offer.gpu_raw) == 120
    assert offer.region == "eu [31m"


def test_machines_without_a_gpu_are_left_out(source, market):
    market.shown = [rented("cpu", gpu_count=0), rented("nameless", gpu_raw=""), rented("gpu")]
    assert refresh(source) == 1
