"""The whole way for every provider: a filled form, a beat, and its machines and offers are kept as it tells them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory import tasks
from fleet.inventory.accounts import create_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.offers.refresh import read_offers
from fleet.inventory.provider_word.models import ProviderUsage
from fleet.providers.base import Capability
from fleet.teams.audit import Actor
from tests.fleet.providers.contract.cast import FAKES, has


@pytest.fixture(params=FAKES)
def fake(request, monkeypatch):
    """Each provider's fake in turn, with the adapter led to it."""
    running = FAKES[request.param]()
    running.hurry(monkeypatch)
    for name, value in running.env().items():
        monkeypatch.setenv(name, value)
    yield running
    running.close()


@pytest.fixture
def account(request, fake, acme, alice) -> ProviderAccount:
    kind = request.node.callspec.params["fake"]
    actor = Actor(alice, "alice", "page")
    return create_account(actor=actor, team=acme, kind=kind, name=kind, values=dict(fake.options))


def test_what_it_lists_is_in_the_fleet(account, fake, monkeypatch):
    refs = fake.seed(3)
    monkeypatch.setattr(tasks.poll, "apply_async", lambda args, **options: tasks.poll(*args))
    ProviderAccount.objects.update(next_poll_at=timezone.now() - timedelta(minutes=1))
    assert tasks.dispatch_polls() == 1
    account.refresh_from_db()
    assert (account.failures, account.error_detail) == (0, "")
    kept = Instance.objects.values_list("external_id", "region", "state", "gone_at")
    assert sorted(kept) == sorted((ref.external_id, ref.region, "running", None) for ref in refs)


@pytest.mark.parametrize("fake", [kind for kind in FAKES if has(kind, Capability.OFFERS)], indirect=True)
def test_what_it_offers_can_be_kept(account, fake):
    assert fake.known_offer.external_id in {row["external_id"] for row in read_offers(account)}


@pytest.mark.parametrize("fake", [kind for kind in FAKES if kind in ("runpod", "vast", "autodl")], indirect=True)
def test_what_its_list_measures_is_kept_as_its_word(account, fake, monkeypatch):
    fake.seed(2)
    monkeypatch.setattr(tasks.poll, "apply_async", lambda args, **options: tasks.poll(*args))
    ProviderAccount.objects.update(next_poll_at=timezone.now() - timedelta(minutes=1))
    tasks.dispatch_polls()
    kept = ProviderUsage.objects.filter(source="provider").values_list("instance__account__kind", flat=True)
    assert list(kept) == [account.kind] * 2
