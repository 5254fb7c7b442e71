"""Lists and ratings that a team keeps: replaced whole by name, audited, removed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from fleet.inventory.offers import lists
from fleet.inventory.offers.lists import import_list, remove_list
from fleet.inventory.offers.models import Offer, OfferSource, ProviderScore
from fleet.inventory.offers.ratings import drop_rating, rate_support
from fleet.inventory.offers.sheet import read_sheet
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON
from tests.fleet.inventory.offers.conftest import ABOUT
from tests.fleet.inventory.offers.test_sheet import GPUHUNT

LATER = NOON + timedelta(days=1)


@pytest.fixture
def by_alice(alice):
    return Actor(alice, "alice", "page")


@pytest.fixture
def bring(acme, by_alice):
    """bring("Lambda", "a", "b") imports a list of two machines."""

    def imported(name, *machines, now=NOON):
        lines = "".join(f"{machine},eu,1,4,16,1,L4,24,False,\n" for machine in machines)
        rows = read_sheet(GPUHUNT + lines, ABOUT).rows
        return import_list(actor=by_alice, team=acme, name=name, rows=rows, now=now)

    return imported


def test_a_list_of_the_same_name_takes_the_place_of_the_former(bring):
    bring("Lambda", "a", "b")
    bring("Other", "z")
    bring("Lambda", "b", "c", now=LATER)
    names = Offer.objects.order_by("instance_type").values_list("source__name", "instance_type")
    assert list(names) == [("Lambda", "b"), ("Lambda", "c"), ("Other", "z")]
    assert OfferSource.objects.get(name="Lambda").read_at == LATER
    said = AuditEntry.objects.filter(action="offer_list.import", target_label="Lambda").order_by("at")
    assert [entry.new for entry in said] == [{"offers": 2, "replaced": False}, {"offers": 2, "replaced": True}]


def test_an_import_that_fails_leaves_the_former_list(bring, monkeypatch):
    bring("Lambda", "a")

    def broken(*_args, **_options):
        Offer.objects.all().delete()
        raise OSError

    monkeypatch.setattr(lists, "replace_offers", broken)
    with pytest.raises(OSError), transaction.atomic():
        bring("Lambda", "b", now=LATER)
    assert Offer.objects.get().instance_type == "a"
    assert OfferSource.objects.get().read_at == NOON


def test_a_list_is_removed_with_its_offers(bring, by_alice):
    remove_list(actor=by_alice, source=bring("Lambda", "a"))
    assert not Offer.objects.exists()
    assert AuditEntry.objects.get(action="offer_list.remove").target_label == "Lambda"


def test_a_rating_takes_the_place_of_the_former_and_says_who(acme, alice, by_alice):
    for stars in (2, 4):
        rate_support(actor=by_alice, team=acme, provider="lambda", stars=stars, note="quick", now=NOON)
    score = ProviderScore.objects.get()
    assert (score.value, score.note, score.by, score.at) == (4, "quick", alice, NOON)
    entry = AuditEntry.objects.filter(action="provider_score.rate").latest("at")
    assert (entry.old["stars"], entry.new["stars"]) == (2, 4)
    drop_rating(actor=by_alice, score=score)
    assert not ProviderScore.objects.exists()


def test_the_database_takes_one_to_five_only(acme):
    with pytest.raises(IntegrityError), transaction.atomic():
        ProviderScore.objects.create(team=acme, provider="lambda", value=6)
