"""A person's word against a stop, or for it: only by POST, only of operators, and what cannot be done is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.messages import get_messages
from django.core.exceptions import ValidationError

from fleet.inventory.models import Hold
from tests.fleet.pages.conftest import HELD

NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def stop(make_machine, stop_of):
    machine = make_machine(readings=[HELD], price="8.00")
    return stop_of(machine, "grace", deadline=NOW + timedelta(minutes=20), delivered_at=NOW)


def post(client, stop, verb, **fields):
    """The address that it leads to, and what is said there."""
    response = client.post(f"/t/acme/idle/stops/{stop.pk}/{verb}/", fields)
    assert response.status_code == 302
    stop.refresh_from_db()
    return response["Location"], " ".join(str(said) for said in get_messages(response.wsgi_request))


@pytest.mark.parametrize(
    ("choice", "until"),
    [("1h", NOW + timedelta(hours=1)), ("4h", NOW + timedelta(hours=4)), ("tomorrow", NOW + timedelta(hours=24))],
)
def test_snoozing_puts_it_off(choice, until, bob, as_user, stop):
    where, said = post(as_user(bob), stop, "snooze", **{"for": choice})
    assert stop.snoozed_until == until
    assert where == "/t/acme/idle/"
    assert "train-01 is left alone until then." in said


def test_tomorrow_is_nine_in_the_morning_where_the_reader_is(bob, as_user, stop):
    with time_machine.travel(NOW + timedelta(hours=10), tick=False):
        post(as_user(bob), stop, "snooze", **{"for": "tomorrow"})
    assert stop.snoozed_until == datetime(2026, 11, 18, 9, tzinfo=UTC)


def test_a_snooze_without_a_time_changes_nothing(bob, as_user, stop):
    _where, said = post(as_user(bob), stop, "snooze", **{"for": "ever"})
    assert "Say for how long" in said
    assert stop.snoozed_until is None


def test_a_veto_needs_a_reason_and_is_a_hold_in_ones_name(bob, as_user, stop):
    _where, said = post(as_user(bob), stop, "veto", reason=" \n ")
    assert "Give a reason" in said
    assert stop.vetoed_at is None
    where, said = post(as_user(bob), stop, "veto", reason="the cache\nis only here", back="machine")
    assert where == f"/t/acme/instances/{stop.instance_id}/"
    assert stop.vetoed_at == NOW
    hold = Hold.objects.get(instance=stop.instance)
    assert (hold.owner, hold.reason) == (bob, "the cache is only here")
    assert "you hold it" in said


def test_stopping_now_ends_the_grace(bob, as_user, stop):
    post(as_user(bob), stop, "now")
    assert stop.deadline == NOW


def test_what_is_refused_is_said(bob, as_user, stop, monkeypatch):
    def refuse(**_asked):
        raise ValidationError("It was put off 10 times in a row.")

    monkeypatch.setattr("fleet.pages.idle.acts.snooze_stop", refuse)
    assert "10 times" in post(as_user(bob), stop, "snooze", **{"for": "1h"})[1]


def test_of_what_is_over_nothing_is_changed(bob, as_user, stop):
    stop.stage, stop.ended_at = "stopped", NOW
    stop.save()
    for verb, fields in (("snooze", {"for": "1h"}), ("veto", {"reason": "no"}), ("now", {})):
        assert "Nothing was changed" in post(as_user(bob), stop, verb, **fields)[1]
    assert stop.snoozed_until is None
    assert not Hold.objects.exists()


@pytest.mark.parametrize("verb", ["snooze", "veto", "now"])
def test_only_operators_and_only_by_post(verb, bob, vera, as_user, stop):
    address = f"/t/acme/idle/stops/{stop.pk}/{verb}/"
    assert as_user(vera).post(address, {"for": "1h", "reason": "no"}).status_code == 403
    assert as_user(bob).get(address).status_code == 405
    stop.refresh_from_db()
    assert (stop.snoozed_until, stop.vetoed_at) == (None, None)
