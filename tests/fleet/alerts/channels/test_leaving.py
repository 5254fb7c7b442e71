"""A person who leaves the team hears nothing more of it, from the same moment on."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Delivery, Route
from fleet.alerts.door import raise_event
from fleet.teams.members import remove_member
from fleet.teams.models import AuditEntry, Membership
from tests.fleet.alerts.channels.conftest import states, work

pytestmark = pytest.mark.usefixtures("clock")


def trouble(acme, machine):
    raise_event(team=acme, cause="gpu.lost", subject="instance:1", severity="urgent", instance=machine, now=timezone.now())  # fmt: skip


@pytest.fixture
def both(bob, make_channel, recorder):
    return make_channel("bob's", owner=bob), make_channel("ops")


def test_their_channels_go_and_the_teams_stay(acme, machine, alice, bob, by, both, recorder):
    own, team = both
    trouble(acme, machine)
    remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
    work()
    assert not Channel.objects.filter(pk=own.pk).exists()
    assert not Route.objects.filter(channel=own.pk).exists()
    assert not Delivery.objects.filter(channel=own.pk).exists()
    assert states(team) == ["sent"]
    assert len(recorder.sent) == 1
    assert AuditEntry.objects.get(action="channel.remove").old["owner"] == "bob"


def test_rows_that_were_left_over_are_not_sent(acme, machine, bob, both, recorder):
    """As if the membership had been deleted past the use-case, in the database itself."""
    own, _team = both
    trouble(acme, machine)
    Membership.objects.filter(user=bob)._raw_delete("default")
    work()
    assert states(own) == ["suppressed"]
    assert own.deliveries.get().error == "left"
    assert len(recorder.sent) == 1


def test_a_closed_account_hears_nothing(acme, machine, bob, both, recorder):
    own, _team = both
    bob.is_active = False
    bob.save()
    trouble(acme, machine)
    work()
    assert states(own) == ["suppressed"]


def test_another_persons_channels_stay(acme, alice, bob, vera, by, make_channel, recorder):
    kept = make_channel("vera's", owner=vera)
    remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
    assert Channel.objects.filter(pk=kept.pk).exists()
