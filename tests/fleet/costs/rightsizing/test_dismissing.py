"""A suggestion that a person put away stays away until it saves half as much again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.costs.rightsizing.look import dismiss_suggestion, look_at_machines
from fleet.costs.rightsizing.models import RightSizing
from fleet.inventory.offers.models import Offer
from fleet.providers.base import InstanceState
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.costs.rightsizing.machines import NOW


@pytest.fixture
def row(acme, rented, hours, offered):
    hours(rented())
    offered()
    look_at_machines(team=acme, now=NOW)
    return RightSizing.objects.get()


@pytest.fixture
def dismissed(row, bob):
    assert dismiss_suggestion(actor=Actor(bob, "bob", "page"), row=row, reason="moves in December", now=NOW)
    return row


def look_at_price(team, price):
    Offer.objects.update(price_per_hour=Decimal(price), seen_at=NOW + timedelta(hours=1))
    look_at_machines(team=team, now=NOW + timedelta(hours=1))


def test_who_put_it_away_and_why_is_kept(dismissed, bob):
    dismissed.refresh_from_db()
    assert (dismissed.dismissed_by, dismissed.dismissed_reason) == (bob, "moves in December")
    entry = AuditEntry.objects.get(action="right_sizing.dismiss")
    assert (entry.new, entry.old["saving"]) == ({"reason": "moves in December"}, "1197.20")


def test_twice_is_once(dismissed, bob):
    assert not dismiss_suggestion(actor=Actor(bob, "bob", "page"), row=dismissed, reason="again", now=NOW)
    assert AuditEntry.objects.filter(action="right_sizing.dismiss").count() == 1


def test_what_changed_meanwhile_is_not_put_away_unseen(row, bob):
    RightSizing.objects.update(saving_per_month=Decimal(5000))
    assert not dismiss_suggestion(actor=Actor(bob, "bob", "page"), row=row, reason="too little", now=NOW)


@pytest.mark.parametrize(("price", "back"), [("4.20", False), ("4.10", True)])
def test_it_comes_back_when_it_saves_half_as_much_again(acme, dismissed, price, back):
    """1,197.20 x 1.5 = 1,795.80 a month: from a price of 4.10 on."""
    look_at_price(acme, price)
    dismissed.refresh_from_db()
    assert (dismissed.dismissed_at is None) is back


def test_a_machine_that_was_off_for_a_day_does_not_bring_it_back(acme, dismissed):
    machine = dismissed.instance
    machine.state = InstanceState.STOPPED
    machine.save()
    look_at_machines(team=acme, now=NOW + timedelta(hours=1))
    dismissed.refresh_from_db()
    assert (dismissed.why, dismissed.kind) == ("off", "")
    machine.state = InstanceState.RUNNING
    machine.save()
    look_at_machines(team=acme, now=NOW + timedelta(hours=2))
    dismissed.refresh_from_db()
    assert (dismissed.kind, dismissed.dismissed_reason) == ("fewer", "moves in December")
