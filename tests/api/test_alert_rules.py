"""The rules over the API: what holds, what a team changes, what is refused."""

from __future__ import annotations

import pytest

from fleet.alerts.models import Rule
from fleet.teams.models import AuditEntry, Membership, Role, Scope

LIST = "/api/v1/alert-rules/"
THERMAL = f"{LIST}thermal/"


def patch(client, address, body):
    return client.patch(address, body, content_type="application/json")


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


def threshold(told, name="celsius"):
    return next(each for each in told["thresholds"] if each["name"] == name)


def test_all_rules_are_listed_with_what_holds(script, acme):
    Rule.objects.create(team=acme, kind="thermal", enabled=False, thresholds={"celsius": 80})
    rows = {row["kind"]: row for row in script.get(LIST).json()["results"]}
    assert {"gpu_lost", "agent_silent", "xid", "own_trouble"} <= set(rows)
    assert rows["thermal"]["enabled"] is False
    assert threshold(rows["thermal"])["value"] == 80
    assert rows["gpu_lost"]["enabled"] is True


def test_a_change_keeps_what_is_not_sent_and_null_is_the_rules_own(script):
    patch(script, THERMAL, {"severity": "urgent", "thresholds": {"celsius": 90}})
    told = patch(script, THERMAL, {"for_seconds": 60}).json()
    assert (told["severity"], told["for_seconds"], threshold(told)["value"]) == ("urgent", 60, 90)
    told = patch(script, THERMAL, {"severity": None, "for_seconds": None, "thresholds": {"celsius": None}}).json()
    assert told["severity"] == told["default_severity"]
    assert threshold(told)["value"] == threshold(told)["default"]
    assert AuditEntry.objects.filter(action="alert_rule.update", via="api").count() == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"thresholds": {"celsius": 1}}, "celsius"),
        ({"thresholds": {"kelvin": 1}}, "kelvin"),
        ({"thresholds": {"celsius": "hot"}}, "thresholds.celsius"),
        ({"severity": "dire"}, "severity"),
        ({"for_seconds": -1}, "for_seconds"),
        ({"enabld": False}, "enabld"),
    ],
)
def test_what_cannot_be_is_refused_by_name(script, body, field):
    answer = patch(script, THERMAL, body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not Rule.objects.exists()


def test_there_is_no_such_rule(script):
    assert script.get(f"{LIST}weather/").status_code == 404
    assert patch(script, f"{LIST}weather/", {"enabled": False}).status_code == 404


def test_a_reader_changes_nothing(fleet, acme, as_token):
    assert patch(as_token(acme), THERMAL, {"enabled": False}).status_code == 403


def test_who_is_in_several_teams_names_one(fleet, alice, rival, as_user):
    Membership.objects.create(team=rival, user=alice, role=Role.VIEWER)
    client = as_user(alice)
    assert client.get(LIST).json()["field"] == "team"
    assert client.get(LIST, {"team": "rival"}).status_code == 200
    assert patch(client, f"{THERMAL}?team=rival", {"enabled": False}).status_code == 403
    assert not Rule.objects.exists()


def test_a_preview_says_how_often_or_why_not(script):
    told = script.get(f"{LIST}gpu_lost/preview/").json()
    assert (told["times"], told["counted"], told["why"]) == (0, "events", "")
    assert script.get(f"{LIST}own_trouble/preview/").json()["why"] == "no_history"
