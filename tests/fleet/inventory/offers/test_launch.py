"""Which offers can be rented from here: live ones of an account that may act, at a provider whose adapter rents."""

from __future__ import annotations

import pytest
from django.urls import NoReverseMatch
from django.utils import timezone

from fleet.inventory.offers import launch
from fleet.inventory.offers.models import OfferSource, SourceKind
from fleet.providers.base import Capability


@pytest.fixture
def live(acme, lab, provider, offer, monkeypatch):
    """An offer of an account that may act."""
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.CREATE})
    lab.monitor_only = False
    lab.save()
    source = OfferSource.objects.create(team=acme, kind=SourceKind.LIVE, name="Lab", account=lab)
    return offer("live", source=source)


def test_a_live_offer_of_an_account_that_may_act_can_be_rented(live):
    assert launch.is_launchable(live)


def test_a_list_cannot_be_rented_from(offer):
    assert not launch.is_launchable(offer("listed"))


@pytest.mark.parametrize(
    "changed",
    [{"monitor_only": True}, {"enabled": False}, {"disconnected_at": timezone.now()}],
    ids=lambda one: next(iter(one)),
)
def test_an_account_that_may_not_act_rents_nothing(live, changed):
    for name, value in changed.items():
        setattr(live.source.account, name, value)
    assert not launch.is_launchable(live)
    assert launch.launch_url(live) is None


def test_an_adapter_that_cannot_rent_rents_nothing(live, provider, monkeypatch):
    monkeypatch.setattr(provider, "capabilities", frozenset({Capability.LIST}))
    assert not launch.is_launchable(live)


def test_the_way_there_names_the_offer(live, monkeypatch):
    monkeypatch.setattr(launch, "reverse", lambda name, args: f"/t/{args[0]}/{name}/")
    assert launch.launch_url(live) == f"/t/acme/launch/?offer={live.pk}"


def test_without_a_page_for_it_there_is_no_way(live, monkeypatch):
    def nowhere(*_args, **_options):
        raise NoReverseMatch

    monkeypatch.setattr(launch, "reverse", nowhere)
    assert launch.launch_url(live) is None


def test_the_page_leads_operators_there_and_nobody_else(live, bob, vera, as_user):
    link = f'href="/t/acme/launch/?offer={live.pk}"'
    assert link in as_user(bob).get("/t/acme/offers/").text
    assert link not in as_user(vera).get("/t/acme/offers/").text
