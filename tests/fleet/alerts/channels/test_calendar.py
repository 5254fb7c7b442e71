"""The calendar feed: what is planned, as calendar programs keep it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import icalendar
import pytest
from django.test import Client
from django.utils import timezone

from fleet.alerts.channels import calendar
from fleet.alerts.channels.calendar import PlanKind, Planned, make_feed, revoke_feed, sync_calendar, sync_calendars
from fleet.alerts.channels.models import CalendarEntry, CalendarFeed
from fleet.alerts.windows import add_window, cancel_window
from fleet.teams.members import remove_member
from fleet.teams.models import Membership
from tests.fleet.alerts.conftest import NOON, minutes

pytestmark = pytest.mark.usefixtures("clock")
HOSTILE = "a;b,c\\d\nEND:VCALENDAR " + "长" * 80


@pytest.fixture
def feed(acme, bob, by) -> str:
    return make_feed(actor=by(bob), team=acme, user=bob, now=NOON)


def read(secret: str) -> list[Any]:
    answer = Client().get(f"/calendar/{secret}.ics")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/calendar; charset=utf-8"
    assert all(len(line) <= 75 for line in answer.content.split(b"\r\n"))
    return list(icalendar.Calendar.from_ical(answer.content).walk("VEVENT"))


def sync(team) -> int:
    return sync_calendar(team=team, now=timezone.now())


def test_a_lease_keeps_its_uid_and_counts_its_changes(acme, make_instance, feed, clock):
    machine = make_instance(name="lease-01", expires_at=minutes(600))
    assert sync(acme) == 1
    assert sync(acme) == 0
    (first,) = read(feed)
    assert str(first["SUMMARY"]) == "The lease of lease-01 ends"
    assert (first["DTSTART"].dt, int(first["SEQUENCE"]), str(first["STATUS"])) == (minutes(600), 0, "CONFIRMED")
    clock.shift(60)
    machine.expires_at = minutes(1_200)
    machine.save()
    sync(acme)
    (second,) = read(feed)
    assert second["UID"] == first["UID"]
    assert (second["DTSTART"].dt, int(second["SEQUENCE"])) == (minutes(1_200), 1)
    assert second["DTSTAMP"].dt > first["DTSTAMP"].dt


def test_what_is_called_off_says_so(acme, machine, alice, by, feed):
    window = add_window(
        actor=by(alice), team=acme, starts_at=minutes(60), ends_at=minutes(120), now=NOON, instance=machine, reason=HOSTILE
    )  # fmt: skip
    sync(acme)
    (planned,) = read(feed)
    assert (planned["DTSTART"].dt, planned["DTEND"].dt) == (minutes(60), minutes(120))
    assert str(planned["SUMMARY"]) == "Maintenance: train-01"
    assert str(planned["DESCRIPTION"]) == HOSTILE.replace("\n", " ")
    cancel_window(actor=by(alice), window=window, now=minutes(1))
    sync(acme)
    (cancelled,) = read(feed)
    assert (cancelled["UID"], int(cancelled["SEQUENCE"]), str(cancelled["STATUS"])) == (planned["UID"], 1, "CANCELLED")
    assert sync(acme) == 0


def test_what_is_called_off_while_it_runs_says_so_too(acme, machine, alice, by, feed, clock):
    window = add_window(actor=by(alice), team=acme, starts_at=minutes(60), ends_at=minutes(120), now=NOON, instance=machine)  # fmt: skip
    sync(acme)
    clock.move_to(minutes(90))
    cancel_window(actor=by(alice), window=window, now=minutes(90))
    sync(acme)
    (cancelled,) = read(feed)
    assert (int(cancelled["SEQUENCE"]), str(cancelled["STATUS"])) == (1, "CANCELLED")


def test_a_machine_that_is_given_back_early_has_no_end_to_wait_for(acme, make_instance, feed):
    machine = make_instance(name="x", expires_at=minutes(600))
    sync(acme)
    machine.gone_at = NOON
    machine.save()
    sync(acme)
    assert [str(event["STATUS"]) for event in read(feed)] == ["CANCELLED"]


def test_what_is_past_stays_as_it_was(acme, make_instance, feed, clock):
    machine = make_instance(name="x", expires_at=minutes(10))
    sync(acme)
    clock.shift(timedelta(hours=1))
    machine.gone_at = timezone.now()
    machine.save()
    assert sync(acme) == 0
    assert [str(event["STATUS"]) for event in read(feed)] == ["CONFIRMED"]


def test_slices_above_plan_things_too(acme, feed, monkeypatch):
    kinds = dict(calendar._kinds)
    monkeypatch.setattr(calendar, "_kinds", kinds)
    stop = Planned("stop-1", minutes(30), minutes(45), {"machine": "dev-01"})
    calendar.register_plan(PlanKind("stop", lambda team, now: [stop], lambda values: f"{values['machine']} is stopped"))
    sync_calendars(now=NOON)
    assert [str(event["SUMMARY"]) for event in read(feed)] == ["dev-01 is stopped"]
    with pytest.raises(ValueError, match="registered already"):
        calendar.register_plan(kinds["stop"])


def test_reading_changes_nothing(acme, make_instance, feed, django_assert_max_num_queries):
    make_instance(name="x", expires_at=minutes(600))
    before = list(CalendarFeed.objects.values()), list(CalendarEntry.objects.values())
    with django_assert_max_num_queries(4):
        read(feed)
    assert before == (list(CalendarFeed.objects.values()), list(CalendarEntry.objects.values()))


def test_the_readers_language(acme, make_instance, bob, feed):
    bob.language = "zh-hans"
    bob.save()
    make_instance(name="x", expires_at=minutes(600))
    sync(acme)
    assert [str(event["SUMMARY"]) for event in read(feed)] == ["x 的租约到期"]


class TestItsAddress:
    def test_only_its_hash_is_kept(self, feed):
        assert feed not in str(CalendarFeed.objects.values().get())

    def test_a_new_one_ends_the_old_one(self, acme, bob, by, feed):
        newer = make_feed(actor=by(bob), team=acme, user=bob, now=NOON)
        assert Client().get(f"/calendar/{feed}.ics").status_code == 404
        assert Client().get(f"/calendar/{newer}.ics").status_code == 200

    def test_it_can_be_revoked(self, acme, bob, by, feed):
        assert revoke_feed(actor=by(bob), team=acme, user=bob)
        assert not revoke_feed(actor=by(bob), team=acme, user=bob)
        assert Client().get(f"/calendar/{feed}.ics").status_code == 404

    def test_it_ends_with_the_membership(self, acme, alice, bob, by, feed):
        remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
        assert Client().get(f"/calendar/{feed}.ics").status_code == 404
        assert not CalendarFeed.objects.exists()

    def test_it_ends_with_the_account(self, bob, feed):
        bob.is_active = False
        bob.save()
        assert Client().get(f"/calendar/{feed}.ics").status_code == 404

    def test_guesses_are_counted(self, db):
        codes = {Client().get(f"/calendar/rrc_{number}.ics").status_code for number in range(61)}
        assert codes == {404, 429}

    def test_nobody_posts_to_it(self, feed):
        assert Client().post(f"/calendar/{feed}.ics").status_code == 405
