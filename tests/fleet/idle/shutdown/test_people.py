"""What people say of a stop: by links without sign-in, and signed in. Later is counted and bounded; no is a hold; now needs a role."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from fleet.alerts.channels.links import Signed, sign
from fleet.alerts.channels.models import Delivery
from fleet.alerts.channels.texts import message_of
from fleet.alerts.models import Alert
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.people import LONGEST_SNOOZE, MOST_SNOOZES, snooze_stop, stop_now, veto_stop
from fleet.inventory.models import Hold
from fleet.teams.models import AuditEntry

HOUR = timedelta(hours=1)


@pytest.fixture
def warned(room):
    room.until("grace")
    return room


@pytest.fixture
def link(warned, channel) -> str:
    alert = Alert.objects.get(cause="idle.stop")
    return f"/a/{sign(Signed(alert.pk, alert.reopened, channel.pk, 'n-1'))}/"


def test_the_message_has_a_link_for_each(warned, channel):
    row = Delivery.objects.select_related(
        "event__alert__team", "alert__team", "alert__instance__account", "route"
    ).get()
    message = message_of(channel, [row], now=warned.now)
    assert [act.label for act in message.acts] == [
        "Keep it 1 hour", "Keep it 4 hours", "Keep it until tomorrow, 09:00", "Don't stop it",
    ]  # fmt: skip
    assert [act.url.partition("?")[2] for act in message.acts] == [
        "act=keep_1h", "act=keep_4h", "act=keep_tomorrow", "act=veto",
    ]  # fmt: skip
    assert "idle since" in message.lines[0]
    assert "(GPUs read 0 % in every reading)" in message.lines[0]


def test_opening_a_link_changes_nothing_and_shows_what_it_named_first(link, warned):
    page = Client(enforce_csrf_checks=True).get(f"{link}?act=veto").content.decode()
    assert re.findall(r'name="action" value="(\w+)"', page)[0] == "veto"
    assert (warned.stop.snoozes, Hold.objects.count()) == (0, 0)


def test_a_link_keeps_it_once(link, warned):
    browser = Client(enforce_csrf_checks=True)
    assert "It is kept." in browser.post(link, {"action": "keep_1h"}).content.decode()
    assert "Nothing was changed" in browser.post(link, {"action": "keep_1h"}).content.decode()
    stop = warned.stop
    assert (stop.snoozes, stop.snoozed_until) == (1, warned.now + HOUR)
    assert AuditEntry.objects.get(action="idle_stop.snooze").actor_label == "link sent to ops"
    warned.go(2)
    stop.refresh_from_db()
    assert (stop.stage, stop.why, stop.rests_until) == ("cancelled", "snoozed", stop.snoozed_until)
    assert IdleStop.objects.count() == 1
    warned.driver.wait(3_600)
    warned.go(1)
    assert (warned.stop.stage, warned.stop.snoozes) == ("grace", 1), "warned again, and counted on"


def test_a_link_says_no(link, warned):
    Client().post(link, {"action": "veto"})
    hold = Hold.objects.get()
    assert (hold.kind, hold.expires_at) == ("person", hold.started_at + timedelta(days=7))
    warned.go(1)
    assert (warned.stop.stage, warned.stop.why) == ("cancelled", "held")


@pytest.mark.parametrize("action", ["stop_now", "acknowledge", "snooze_1h", ""])
def test_a_link_does_nothing_else(link, action):
    assert Client().post(link, {"action": action}).status_code == 422


def test_later_is_bounded(warned, by_alice):
    for until in (warned.now, warned.now + LONGEST_SNOOZE + timedelta(seconds=1)):
        with pytest.raises(ValidationError):
            snooze_stop(actor=by_alice, stop=warned.stop, until=until, now=warned.now)
    IdleStop.objects.update(snoozes=MOST_SNOOZES)
    with pytest.raises(ValidationError):
        snooze_stop(actor=by_alice, stop=warned.stop, until=warned.now + HOUR, now=warned.now)


def test_too_late(room, by_alice):
    room.until("verifying")
    stop = room.stop
    assert not snooze_stop(actor=by_alice, stop=stop, until=room.now + HOUR, now=room.now)
    assert not veto_stop(actor=by_alice, stop=stop, reason="no", now=room.now)
    assert not Hold.objects.exists()


def test_now_does_not_wait_for_its_grace(warned, by_alice):
    assert stop_now(actor=by_alice, stop=warned.stop, now=warned.now)
    warned.until("stopped", minutes=4)
    assert warned.stop.hurried_at is not None


def test_now_is_refused_before_anybody_was_warned(room, by_alice):
    room.delivers = False
    room.until("warned")
    with pytest.raises(ValidationError):
        stop_now(actor=by_alice, stop=room.stop, now=room.now)


def test_the_same_said_twice_counts_once(warned, by_alice):
    stop, until = warned.stop, warned.now + HOUR
    for late in (timedelta(0), timedelta(seconds=2)):
        assert snooze_stop(actor=by_alice, stop=stop, until=until + late, now=warned.now + late)
        assert veto_stop(actor=by_alice, stop=stop, reason="no", now=warned.now + late)
    assert [stop_now(actor=by_alice, stop=stop, now=warned.now) for _click in range(2)] == [True, False]
    assert (warned.stop.snoozes, Hold.objects.count()) == (1, 1)
    said = warned.stop.events.filter(kind__in=("snoozed", "vetoed", "hurried"))
    assert sorted(said.values_list("kind", flat=True)) == ["hurried", "snoozed", "vetoed"]
