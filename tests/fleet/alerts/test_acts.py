"""What people do with alerts on pages: one, several, from the list and from the alert's own page."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert
from fleet.teams.models import AuditEntry

ACT = "/t/acme/alerts/act/"


@pytest.fixture
def opened(acme, make_instance):
    def make(name="train-01", severity="urgent") -> Alert:
        machine = make_instance(name=name)
        subject = f"instance:{machine.pk}"
        now = timezone.now()
        return raise_event(team=acme, cause="gpu.lost", subject=subject, severity=severity, instance=machine, now=now)

    return make


def fresh(alert: Alert) -> Alert:
    return Alert.objects.get(pk=alert.pk)


def test_it_is_acknowledged_with_a_note(opened, bob, as_user):
    alert = opened()
    answer = as_user(bob).post(ACT + "?show=open&by=owner", {"do": "acknowledge", "alert": alert.pk, "note": "on\tit "})
    assert (answer.status_code, answer.url) == (302, "/t/acme/alerts/?show=open&by=owner")
    alert = fresh(alert)
    assert (alert.acknowledged_by, alert.acknowledged_note) == (bob, "on it")
    assert AuditEntry.objects.get(action="alert.acknowledge").actor == bob


@pytest.mark.parametrize(
    ("choice", "until"),
    [
        ("1h", datetime(2026, 11, 30, 20, 30, tzinfo=UTC)),
        ("4h", datetime(2026, 11, 30, 23, 30, tzinfo=UTC)),
        # 03:30 of the next day in Shanghai: its tomorrow is the day after.
        ("tomorrow", datetime(2026, 12, 2, 1, 0, tzinfo=UTC)),
        ("worse", None),
    ],
)
def test_it_is_snoozed_on_the_readers_clock(opened, bob, as_user, time_machine, choice, until):
    time_machine.move_to(datetime(2026, 11, 30, 19, 30, tzinfo=UTC), tick=False)
    bob.time_zone = "Asia/Shanghai"
    bob.save()
    alert = opened()
    as_user(bob).post(ACT, {"do": f"snooze {choice}", "alert": alert.pk})
    alert = fresh(alert)
    assert alert.is_snoozed
    assert alert.snoozed_until == until


def test_it_is_woken_escalated_and_a_note_put_away(opened, bob, as_user):
    client = as_user(bob)
    alert, note = opened(), opened("note-01", "note")
    client.post(ACT, {"do": "snooze worse", "alert": alert.pk})
    client.post(ACT, {"do": "wake", "alert": alert.pk})
    client.post(ACT, {"do": "escalate", "alert": alert.pk})
    client.post(ACT, {"do": "resolve", "alert": note.pk})
    assert not fresh(alert).is_snoozed
    assert fresh(alert).escalated_at
    assert fresh(note).closed_why == "person"


def test_a_warning_is_not_put_away(opened, bob, as_user):
    alert = opened()
    answer = as_user(bob).post(ACT, {"do": "resolve", "alert": alert.pk}, follow=True)
    assert "Warnings close when the evidence shows" in answer.text
    assert fresh(alert).is_open


def test_several_at_once(opened, bob, as_user):
    alerts = [opened(f"m-{number}") for number in range(3)]
    answer = as_user(bob).post(ACT, {"do": "acknowledge", "alert": [alert.pk for alert in alerts]}, follow=True)
    assert "3 alerts acknowledged" in answer.text
    assert Alert.objects.exclude(acknowledged_at=None).count() == 3


def test_what_closed_meanwhile_is_not_changed_and_said(opened, acme, bob, as_user):
    alert = opened()
    clear_event(team=acme, cause=alert.cause, subject=alert.subject, now=timezone.now())
    answer = as_user(bob).post(ACT, {"do": "acknowledge", "alert": alert.pk}, follow=True)
    assert "Nothing changed" in answer.text


@pytest.mark.parametrize(
    "sent",
    [{}, {"do": "nonsense"}, {"do": "snooze 3y"}, {"do": "acknowledge"}, {"do": "acknowledge", "alert": "9" * 30},
     {"do": "acknowledge", "alert": "٣"}, {"do": "acknowledge", "alert": "x"}],
)  # fmt: skip
def test_what_makes_no_sense_changes_nothing(opened, bob, as_user, sent):
    alert = opened()
    answer = as_user(bob).post(ACT, sent, follow=True)
    assert answer.status_code == 200
    assert fresh(alert).changed_at == alert.changed_at


def test_a_script_gets_the_list_again_and_what_to_say(opened, bob, as_user):
    alert = opened()
    answer = as_user(bob).post(ACT, {"do": "snooze 1h", "alert": alert.pk}, headers={"HX-Request": "true"})
    assert json.loads(answer.headers["HX-Trigger"]) == {"say": "Snoozed; it comes back."}
    assert "train-01" not in answer.text


def test_a_viewer_looks_and_does_not_act(opened, vera, as_user):
    alert = opened()
    client = as_user(vera)
    assert client.post(ACT, {"do": "acknowledge", "alert": alert.pk}).status_code == 403
    assert 'name="do"' not in client.get("/t/acme/alerts/").text + client.get(f"/t/acme/alerts/{alert.pk}/").text


def test_another_teams_alert_is_out_of_reach(opened, charlie, as_user):
    alert = opened()
    as_user(charlie).post("/t/rival/alerts/act/", {"do": "acknowledge", "alert": alert.pk})
    assert fresh(alert).acknowledged_at is None


def test_the_alerts_own_page_tells_its_course_and_who_did_what(opened, bob, as_user):
    alert = opened()
    client = as_user(bob)
    answer = client.post(ACT + "?from=alert", {"do": "acknowledge", "alert": alert.pk, "note": "mine"})
    assert answer.url == f"/t/acme/alerts/{alert.pk}/"
    text = client.get(answer.url).text
    for said in (
        "train-01 lost a GPU",
        "Opened",
        "Acknowledged",
        "Alert acknowledged",
        "“mine”",
        "Restart the machine",
    ):
        assert said in text


def test_a_machines_page_lists_its_alerts_and_their_course(opened, bob, as_user):
    alert = opened()
    text = as_user(bob).get(f"/t/acme/instances/{alert.instance_id}/").text
    assert f'href="/t/acme/alerts/{alert.pk}/"' in text
    assert "train-01 lost a GPU<small>Opened" in text


def test_of_several_those_that_may_be_done_are_done_and_the_rest_is_said(opened, bob, as_user):
    first, warning, last = opened("a", "note"), opened("b", "warning"), opened("c", "note")
    answer = as_user(bob).post(ACT, {"do": "resolve", "alert": [first.pk, warning.pk, last.pk]}, follow=True)
    assert [fresh(alert).is_open for alert in (first, warning, last)] == [False, True, False]
    assert "2 notes put away until they stop. Warnings close when the evidence shows that they are over." in answer.text
