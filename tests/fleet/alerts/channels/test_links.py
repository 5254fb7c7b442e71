"""Links in messages: no sign-in, signed, ended after three days, changed by POST alone and once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from fleet.alerts.channels.links import VALID_FOR, Signed, sign
from fleet.alerts.channels.manage import remove_channel
from fleet.alerts.channels.models import Channel, LinkUse
from fleet.alerts.door import clear_event, raise_event
from fleet.teams.models import AuditEntry, Membership
from tests.fleet.alerts.channels.conftest import work
from tests.fleet.alerts.conftest import NOON

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def alert(acme, machine, make_channel, recorder):
    make_channel()
    return raise_event(
        team=acme, cause="machine.unreachable", subject=f"instance:{machine.pk}", severity="urgent", instance=machine, now=NOON
    )  # fmt: skip


@pytest.fixture
def link(alert, recorder, settings) -> str:
    settings.PUBLIC_URL = "https://rackrent.example"
    work()
    return str(recorder.sent[0].acts[0].url).removeprefix("https://rackrent.example")


@pytest.fixture
def browser() -> Client:
    """Nobody is signed in, and forged requests would be noticed where cookies count."""
    return Client(enforce_csrf_checks=True)


def test_opening_it_as_often_as_scanners_do_changes_nothing(alert, link, browser):
    for method in (browser.get, browser.head, browser.get):
        assert method(link).status_code == 200
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.snoozed_at) == (None, None)
    assert not LinkUse.objects.exists()
    assert alert.events.count() == 1


def test_the_page_leaks_its_address_to_nobody(link, browser):
    page = browser.get(link)
    assert page["Referrer-Policy"] == "no-referrer"
    assert "noindex" in page["X-Robots-Tag"]
    assert "no-store" in page["Cache-Control"]
    assert "://" not in page.content.decode().replace("http://www.w3.org/2000/svg", "")


def test_acknowledge_once(alert, link, browser):
    assert "Acknowledged: reminders stop." in browser.post(link, {"action": "acknowledge"}).content.decode()
    again = browser.post(link, {"action": "acknowledge"})
    assert "Nothing was changed" in again.content.decode()
    alert.refresh_from_db()
    assert alert.acknowledged_at == NOON
    assert [event.kind for event in alert.events.order_by("pk")] == ["opened", "acknowledged"]
    entry = AuditEntry.objects.get(action="alert.acknowledge")
    assert (entry.actor, entry.actor_label, entry.via, entry.ip_address) == (None, "link sent to ops", "link", "127.0.0.1")  # fmt: skip


@pytest.mark.parametrize(
    ("action", "until"),
    [
        ("snooze_1h", NOON + timedelta(hours=1)),
        ("snooze_4h", NOON + timedelta(hours=4)),
        ("snooze_tomorrow", NOON + timedelta(hours=21)),
    ],
)
def test_snooze(alert, link, browser, clock, action, until):
    browser.post(link, {"action": action})
    clock.shift(600)
    browser.post(link, {"action": action})
    alert.refresh_from_db()
    assert alert.snoozed_until == until, "the second time does not prolong it"


def test_tomorrow_is_the_readers(acme, alert, link, browser, make_channel):
    route = Channel.objects.get().routes.get()
    route.time_zone = "Asia/Shanghai"
    route.save()
    browser.post(link, {"action": "snooze_tomorrow"})
    alert.refresh_from_db()
    assert alert.snoozed_until == NOON + timedelta(hours=13)


def test_an_act_that_there_is_not(alert, link, browser):
    assert browser.post(link, {"action": "terminate"}).status_code == 422
    assert browser.post(link).status_code == 422


def test_it_ends_after_three_days(link, browser, clock, alert):
    clock.shift(VALID_FOR + timedelta(seconds=1))
    for answer in (browser.get(link), browser.post(link, {"action": "acknowledge"})):
        assert answer.status_code == 410
        assert "three days" in answer.content.decode()
    alert.refresh_from_db()
    assert alert.acknowledged_at is None


@pytest.mark.parametrize("token", ["x", "W10:1abc:def", "%00", "a" * 3_000])
def test_nobody_makes_one_up(db, browser, token):
    assert browser.get(f"/a/{token}/").status_code == 410


def test_a_changed_one_is_refused(alert, link, browser):
    token = link.split("/")[2]
    assert browser.post(f"/a/{'A' + token[1:]}/", {"action": "acknowledge"}).status_code == 410


def test_a_link_of_a_course_that_is_over_does_nothing_to_the_next_one(acme, machine, alert, link, browser, clock):
    subject = f"instance:{machine.pk}"
    clear_event(team=acme, cause="machine.unreachable", subject=subject, now=timezone.now())
    assert "has closed since" in browser.get(link).content.decode()
    clock.shift(60)
    raise_event(team=acme, cause="machine.unreachable", subject=subject, severity="urgent", now=timezone.now())
    browser.post(link, {"action": "acknowledge"})
    alert.refresh_from_db()
    assert alert.is_open
    assert alert.acknowledged_at is None


class TestWhoMayStill:
    def test_it_ends_with_its_channel(self, alert, link, browser, alice, by):
        remove_channel(actor=by(alice), channel=Channel.objects.get())
        assert browser.post(link, {"action": "acknowledge"}).status_code == 410

    def test_it_ends_with_the_membership_of_its_reader(self, acme, alert, bob, make_channel, browser):
        own = make_channel("own", owner=bob)
        address = f"/a/{sign(Signed(alert.pk, 0, own.pk, 'n'))}/"
        assert browser.get(address).status_code == 200
        Membership.objects.filter(user=bob)._raw_delete("default")
        assert browser.post(address, {"action": "acknowledge"}).status_code == 410

    def test_another_teams_channel_gives_no_power(self, alert, rival, make_channel, browser):
        other = make_channel("other", team=rival)
        assert browser.get(f"/a/{sign(Signed(alert.pk, 0, other.pk, 'n'))}/").status_code == 410


def test_it_is_rate_limited(alert, link, browser):
    codes = [browser.post(link, {"action": "x"}).status_code for _time in range(31)]
    assert codes == [422] * 30 + [429]
