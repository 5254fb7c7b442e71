"""Escalation on pages: to whom an alert can be escalated, when it is by itself, and what a team chooses of it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Route
from fleet.alerts.door import raise_event
from fleet.alerts.models import Alert, EscalationPolicy

INBOX, ACT, PAGE, RULES = (f"/t/acme/alerts/{rest}" for rest in ("", "act/", "escalation/", "rules/"))


@pytest.fixture
def reachable(acme, bob):
    own = Channel.objects.create(team=acme, owner=bob, kind="email", name="mine")
    Route.objects.create(channel=own)
    return bob


@pytest.fixture
def alert(acme, make_instance) -> Alert:
    machine = make_instance(name="train-01")
    now = timezone.now() - timedelta(minutes=1)
    return raise_event(team=acme, cause="gpu.lost", subject="x", severity="urgent", instance=machine, now=now)


def offered(text: str) -> list[str]:
    return re.findall(r'value="escalate ?\d*">([^<]+)<', text)


def test_the_menu_names_those_whom_it_reaches(alert, alice, reachable, as_user):
    assert offered(as_user(alice).get(INBOX).text) == ["to bob", "to whoever stands behind the first readers"]


def test_it_is_escalated_to_the_person_chosen_and_the_page_says_so(alert, alice, reachable, as_user):
    client = as_user(alice)
    client.post(ACT, {"do": f"escalate {reachable.pk}", "alert": alert.pk})
    assert Alert.objects.get().escalated_to == reachable
    assert "escalated to bob" in client.get(INBOX).text
    assert "to bob" in client.get(f"{INBOX}{alert.pk}/").text


@pytest.mark.parametrize("who", ["charlie", "vera", "nobody"])
def test_whoever_is_not_reached_is_refused_in_words(alert, alice, charlie, vera, as_user, who):
    pk = {"charlie": charlie.pk, "vera": vera.pk, "nobody": "²"}[who]
    said = as_user(alice).post(ACT, {"do": f"escalate {pk}", "alert": alert.pk}, headers={"HX-Request": "true"})
    assert ("no channel of their own" if who == "vera" else "no longer in the team") in said.headers["HX-Trigger"]
    assert Alert.objects.get().escalated_at is None


def test_it_says_when_it_escalates_by_itself(alert, acme, alice, reachable, as_user):
    client = as_user(alice)
    assert "Escalates at" in client.get(INBOX).text
    EscalationPolicy.objects.create(team=acme, after_minutes=30, person=reachable)
    assert "Escalates to bob at" in client.get(INBOX).text
    EscalationPolicy.objects.update(after_minutes=None)
    assert "Escalates" not in client.get(INBOX).text


def test_a_team_chooses(acme, alice, reachable, as_user):
    client = as_user(alice)
    assert "within 15 minutes are escalated to whoever stands behind" in client.get(RULES).text
    assert client.post(PAGE, {"after_minutes": "10", "person": reachable.pk}).status_code == 302
    assert "within 10 minutes are escalated to bob." in client.get(RULES).text
    client.post(PAGE, {"after_minutes": "", "person": ""})
    assert "do not escalate by themselves" in client.get(RULES).text


def test_what_cannot_be_is_said_beside_its_field_and_nothing_is_lost(acme, alice, vera, as_user):
    answer = as_user(alice).post(PAGE, {"after_minutes": "9999", "person": vera.pk})
    assert answer.status_code == 422
    assert "9999" in answer.text
    assert "less than or equal to 1440" in answer.text
    assert "Select a valid choice" in answer.text
    assert not EscalationPolicy.objects.exists()


def test_a_viewer_looks_and_changes_nothing(acme, vera, as_user):
    client = as_user(vera)
    assert client.get(RULES).status_code == 200
    assert client.get(PAGE).status_code == client.post(PAGE, {}).status_code == 403
