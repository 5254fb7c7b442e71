"""Holds keep a machine alive; their start and end stay on record."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.machines import holds_in_force, place_hold, release_hold
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON

HOUR = timedelta(hours=1)


@pytest.fixture
def hold(make_instance, bob):
    return place_hold(
        actor=Actor(bob, "bob", "page"),
        instance=make_instance(),
        owner=bob,
        until=NOON + HOUR,
        reason="long evaluation",
        now=NOON,
    )


def test_a_hold_is_in_force_until_its_end(hold):
    assert list(holds_in_force(now=NOON)) == [hold]
    assert list(holds_in_force(now=NOON + HOUR)) == []


def test_without_an_end_until_it_is_released(make_instance, bob):
    actor = Actor(bob, "bob", "page")
    hold = place_hold(actor=actor, instance=make_instance(), owner=bob, now=NOON)
    assert holds_in_force(now=NOON + 10_000 * HOUR).exists()
    assert release_hold(actor=actor, hold=hold, now=NOON + HOUR)
    assert not holds_in_force(now=NOON + HOUR).exists()


def test_an_ended_hold_keeps_its_end(hold, bob):
    actor = Actor(bob, "bob", "page")
    assert release_hold(actor=actor, hold=hold, now=NOON)
    assert not release_hold(actor=actor, hold=hold, now=NOON + HOUR)
    hold.refresh_from_db()
    assert hold.ended_at == NOON


def test_both_are_audited(hold, bob):
    release_hold(actor=Actor(bob, "bob", "page"), hold=hold, now=NOON)
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["hold.place", "hold.release"]
