"""A channel that takes nothing any more: the team hears of it by its other channels, until it works again."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.alerts.channels.manage import remove_channel, update_channel
from fleet.alerts.channels.manage import test_channel as try_channel
from fleet.alerts.channels.models import Channel
from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.door import raise_event
from fleet.alerts.models import Alert
from fleet.alerts.words import title_of, why_of
from tests.fleet.alerts.channels.conftest import Recorder, work
from tests.fleet.alerts.conftest import NOON

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def second(monkeypatch) -> Recorder:
    made = Recorder()
    monkeypatch.setitem(SENDERS, "second", made)
    return made


@pytest.fixture
def broken(acme, machine, recorder, second, make_channel, clock) -> Channel:
    """`ops` breaks at the first alert; `night` goes on."""
    channel: Channel = make_channel("ops")
    make_channel("night", kind="second")
    recorder.outcomes = [Outcome(Result.BROKEN, "gone", "93000")]
    raise_event(team=acme, cause="gpu.lost", subject="instance:1", severity="urgent", instance=machine, now=NOON)
    for _beat in range(3):
        work()
        clock.shift(5)
    channel.refresh_from_db()
    return channel


def alert() -> Alert:
    return Alert.objects.get(cause="channel.broken")


def test_the_other_channels_hear_of_it(broken, second, recorder):
    assert sorted(second.titles) == ["ops takes no more messages", "train-01 lost a GPU"]
    assert recorder.titles == ["train-01 lost a GPU"]
    assert (alert().is_open, alert().severity, title_of(alert())) == (True, "warning", "ops takes no more messages")
    assert "no longer there" in why_of(alert())


def test_it_is_over_when_the_channel_works_again(broken, second, recorder, alice, by, clock):
    try_channel(actor=by(alice), channel=broken, now=timezone.now())
    for _beat in range(3):
        work()
        clock.shift(5)
    assert alert().closed_why == "evidence"
    assert second.titles[-1] == "Resolved: ops takes no more messages"
    assert recorder.titles == ["train-01 lost a GPU", "Rackrent reaches this channel", "train-01 lost a GPU"]


def test_one_that_fails_again_is_no_news(broken, second, recorder, alice, by):
    told = len(second.sent)
    recorder.outcomes = [Outcome(Result.BROKEN, "gone")]
    try_channel(actor=by(alice), channel=broken, now=timezone.now())
    work()
    assert alert().is_open
    assert len(second.sent) == told


def test_one_that_is_switched_off_or_removed_is_missed_by_nobody(broken, alice, by):
    update_channel(actor=by(alice), channel=broken, name="ops", enabled=False, typed={"url": "https://hooks.example/x"})
    assert alert().closed_why == "channel_off"


def test_removing_it_ends_it(broken, alice, by):
    remove_channel(actor=by(alice), channel=broken)
    assert alert().closed_why == "channel_off"


def test_of_a_persons_own_channel_the_team_hears_nothing(acme, machine, recorder, make_channel, bob):
    make_channel("mine", owner=bob)
    recorder.outcomes = [Outcome(Result.BROKEN, "gone")]
    raise_event(team=acme, cause="gpu.lost", subject="instance:1", severity="urgent", instance=machine, now=NOON)
    work()
    assert not Alert.objects.filter(cause="channel.broken").exists()
