"""Maintenance windows on their page: planned, shown, called off."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet.alerts.models import MaintenanceWindow

PAGE = "/t/acme/alerts/maintenance/"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TYPED = {"starts_at": "2026-11-30T14:00", "ends_at": "2026-11-30T16:00", "reason": "driver 580"}


@pytest.fixture(autouse=True)
def at_noon(time_machine):
    time_machine.move_to(NOON, tick=False)


def test_it_is_planned_in_the_readers_zone(machine, bob, as_user):
    bob.time_zone = "Europe/Berlin"
    bob.save()
    answer = as_user(bob).post(PAGE, {**TYPED, "instance": machine.pk}, follow=True)
    window = MaintenanceWindow.objects.get()
    assert (window.instance, window.starts_at, window.created_by) == (
        machine,
        datetime(2026, 11, 30, 13, tzinfo=UTC),
        bob,
    )
    for said in ("train-01", "2026-11-30 14:00", "driver 580", "bob"):
        assert said in answer.text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"ends_at": "2026-11-30T13:00"}, "choose a later end"),
        ({"starts_at": "2026-11-29T14:00", "ends_at": "2026-11-29T15:00"}, "is over already"),
        ({"starts_at": ""}, "This field is required"),
        ({"ends_at": "tomorrow"}, "Enter a valid date/time"),
        ({"instance": "999999"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_lost(machine, bob, as_user, typed, said):
    answer = as_user(bob).post(PAGE, {**TYPED, **typed})
    assert answer.status_code == 422
    assert said in answer.text
    assert "driver 580" in answer.text
    assert not MaintenanceWindow.objects.exists()


def test_it_is_called_off_once(machine, acme, bob, as_user):
    client = as_user(bob)
    client.post(PAGE, TYPED)
    window = MaintenanceWindow.objects.get()
    assert "Called off" in client.post(f"{PAGE}{window.pk}/cancel/", follow=True).text
    assert "Nothing changed" in client.post(f"{PAGE}{window.pk}/cancel/", follow=True).text
    window.refresh_from_db()
    assert window.cancelled_at == NOON


def test_the_inbox_shows_the_coming_week(machine, bob, as_user):
    client = as_user(bob)
    client.post(PAGE, {**TYPED, "instance": machine.pk})
    text = client.get("/t/acme/alerts/").text
    assert "--l:8.3;--n:1.2" in text
    assert "None is open now." in text


def test_a_viewer_looks_and_plans_nothing(acme, vera, as_user):
    client = as_user(vera)
    assert client.post(PAGE, TYPED).status_code == 403
    assert "Plan it" not in client.get(PAGE).text


def test_another_teams_window_is_out_of_reach(acme, bob, charlie, as_user):
    as_user(bob).post(PAGE, TYPED)
    window = MaintenanceWindow.objects.get()
    assert as_user(charlie).post(f"/t/rival/alerts/maintenance/{window.pk}/cancel/").status_code == 404
