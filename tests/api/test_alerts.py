"""Alerts and maintenance windows over the API: what they say, what callers may do, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Route
from fleet.alerts.door import clear_event
from fleet.alerts.models import Alert, MaintenanceWindow
from fleet.teams.models import AuditEntry, Scope

ALERTS = "/api/v1/alerts/"
WINDOWS = "/api/v1/maintenance-windows/"


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


def send(client, address, body=None):
    return client.post(address, body or {}, content_type="application/json")


def ids(client, **filters):
    return [row["id"] for row in client.get(ALERTS, filters).json()["results"]]


def test_one_has_its_words_its_money_its_signals_and_its_course(fleet, script):
    told = script.get(f"{ALERTS}{fleet.alert.pk}/").json()
    assert (told["title"], told["why"]) == ("train-01 lost a GPU", "GPU 0: the driver cannot read it")
    assert (told["state"], told["price_per_hour"]) == ("open", "32.772600")
    assert float(told["spent"]) > 0
    assert [signal["kind"] for signal in told["signals"]] == ["gpu_lost"]
    assert [event["kind"] for event in told["events"]] == ["opened"]


def test_words_are_in_the_language_asked_for(fleet, script):
    told = script.get(f"{ALERTS}{fleet.alert.pk}/", headers={"Accept-Language": "zh-hans"}).json()
    assert "GPU" in told["title"]
    assert told["title"] != "train-01 lost a GPU"


def test_filters(fleet, script, acme):
    pk = fleet.alert.pk
    assert ids(script, state="open,snoozed", severity="urgent", cause="gpu.lost", instance=fleet.instance.pk) == [pk]
    assert ids(script, state="closed") == ids(script, severity="note") == ids(script, instance=fleet.bare.pk) == []
    clear_event(team=acme, cause="gpu.lost", subject=fleet.alert.subject, now=timezone.now())
    assert ids(script, state="closed") == [pk]
    assert script.get(ALERTS, {"state": "ajar"}).json()["field"] == "state"


def test_it_is_acknowledged_as_on_the_page(fleet, script):
    told = send(script, f"{ALERTS}{fleet.alert.pk}/acknowledge/", {"note": "mine"}).json()
    assert (told["acknowledged_note"], told["acknowledged_by"]) == ("mine", None)
    assert Alert.objects.get(pk=fleet.alert.pk).acknowledged_at
    entry = AuditEntry.objects.get(action="alert.acknowledge")
    assert (entry.via, entry.actor) == ("api", None)
    assert send(script, f"{ALERTS}{fleet.alert.pk}/acknowledge/").json()["acknowledged_note"] == "mine"


def test_it_is_snoozed_woken_and_escalated(fleet, script):
    at = f"{ALERTS}{fleet.alert.pk}/"
    until = timezone.now() + timedelta(hours=2)
    told = send(script, f"{at}snooze/", {"until": until.isoformat()}).json()
    assert (told["state"], told["snoozes_until_worse"]) == ("snoozed", False)
    assert send(script, f"{at}wake/").json()["state"] == "open"
    assert send(script, f"{at}snooze/", {"until": None}).json()["snoozes_until_worse"] is True
    assert send(script, f"{at}escalate/").json()["escalated_at"]


@pytest.mark.parametrize(
    ("act", "body", "field"),
    [
        ("snooze", {}, "until"),
        ("snooze", {"until": "2020-01-01T00:00:00Z"}, "until"),
        ("snooze", {"until": "soon"}, "until"),
        ("acknowledge", {"nota": "x"}, "nota"),
        ("acknowledge", {"note": "x" * 301}, "note"),
        ("wake", {"now": True}, "now"),
        ("resolve", {}, None),
    ],
)
def test_what_cannot_be_is_refused_by_name(fleet, script, act, body, field):
    answer = send(script, f"{ALERTS}{fleet.alert.pk}/{act}/", body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert Alert.objects.get(pk=fleet.alert.pk).changed_at == fleet.alert.changed_at


def test_a_closed_one_is_beyond_acts(fleet, script, acme):
    clear_event(team=acme, cause="gpu.lost", subject=fleet.alert.subject, now=timezone.now())
    answer = send(script, f"{ALERTS}{fleet.alert.pk}/acknowledge/")
    assert (answer.status_code, "has closed" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("act", ["acknowledge", "snooze", "wake", "escalate", "resolve"])
def test_a_reader_and_another_team_do_nothing(fleet, acme, rival, as_token, act):
    at = f"{ALERTS}{fleet.alert.pk}/{act}/"
    assert send(as_token(acme, Scope.READ), at).status_code == 403
    assert send(as_token(rival, Scope.ADMIN), at).status_code == 404


def test_nobody_opens_one_by_hand(fleet, script):
    assert send(script, ALERTS, {"cause": "x"}).status_code == 405


def window(**fields):
    now = timezone.now()
    return {
        "starts_at": (now + timedelta(hours=1)).isoformat(),
        "ends_at": (now + timedelta(hours=2)).isoformat(),
        **fields,
    }


def test_a_window_is_planned_and_called_off(fleet, script):
    told = send(script, WINDOWS, window(instance=fleet.instance.pk, reason="driver")).json()
    assert (told["instance"], told["reason"], told["in_force"]) == (fleet.instance.pk, "driver", False)
    assert script.delete(f"{WINDOWS}{told['id']}/").status_code == 204
    assert MaintenanceWindow.objects.get(pk=told["id"]).cancelled_at
    assert [entry.action for entry in AuditEntry.objects.filter(target_id=str(told["id"])).order_by("pk")] == [
        "window.add",
        "window.cancel",
    ]


def test_without_a_machine_it_is_the_team_s(fleet, script, acme):
    told = send(script, WINDOWS, window()).json()
    assert (told["team"], told["instance"], told["account"]) == ("acme", None, None)


def test_windows_in_force_are_filtered(fleet, script):
    send(script, WINDOWS, window())
    rows = script.get(WINDOWS, {"in_force": "true"}).json()["results"]
    assert [row["id"] for row in rows] == [fleet.window.pk]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"starts_at": None}, "starts_at"),
        ({"instance": 10**12}, "instance"),
        ({"reason": "x" * 201}, "reason"),
    ],
)
def test_a_window_that_cannot_be_is_refused(fleet, script, fields, field):
    answer = send(script, WINDOWS, window(**fields))
    assert answer.status_code in {400, 404}
    assert answer.json()["field"] == field
    assert MaintenanceWindow.objects.count() == 1


def test_another_teams_machine_gets_no_window(fleet, rival, as_token):
    answer = send(as_token(rival, Scope.OPERATE), WINDOWS, window(instance=fleet.instance.pk))
    assert answer.status_code == 404
    assert MaintenanceWindow.objects.count() == 1


@pytest.fixture
def reachable(acme, bob):
    own = Channel.objects.create(team=acme, owner=bob, kind="email", name="mine")
    Route.objects.create(channel=own)
    return bob


def test_it_is_escalated_to_a_person_by_their_user_name(fleet, script, reachable, vera):
    at = f"{ALERTS}{fleet.alert.pk}/escalate/"
    told = send(script, at, {"person": "bob"}).json()
    assert (told["escalated_to"], told["events"][0]["values"]["to"]) == ("bob", "bob")
    for name, why in (("vera", "no channel of their own"), ("charlie", "Nobody of the team")):
        refused = send(script, at, {"person": name}).json()
        assert refused["field"] == "person"
        assert why in refused["detail"]


def test_a_team_chooses_when_and_to_whom_alerts_escalate(fleet, script, acme, as_token, reachable):
    at = "/api/v1/alert-escalation/"
    change = {"content_type": "application/json"}
    assert script.get(at).json() == {"team": "acme", "after_minutes": 15, "person": None}
    assert script.patch(at, {"person": "bob"}, **change).json() == {
        "team": "acme",
        "after_minutes": 15,
        "person": "bob",
    }
    assert script.patch(at, {"after_minutes": None}, **change).json()["after_minutes"] is None
    assert script.patch(at, {"person": "charlie"}, **change).json()["field"] == "person"
    assert script.patch(at, {"after_minutes": 0}, **change).json()["field"] == "after_minutes"
    assert as_token(acme, Scope.READ).patch(at, {"person": None}, **change).status_code == 403
    assert script.get(at).json()["person"] == "bob"
