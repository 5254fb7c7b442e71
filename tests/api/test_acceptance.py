"""Acceptance tests over the API."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.quality.models import AcceptanceReport
from fleet.teams.models import Scope
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/acceptance-reports/"


@pytest.fixture
def machine(make_instance):
    instance = make_instance(gpus=1)
    Agent.objects.create(
        instance=instance, token_hash="h", prefix="rra_x", heartbeat_at=timezone.now(), actions=["accept"]
    )
    return instance


def ask(client, **body):
    return client.post(ADDRESS, body, content_type="application/json")


def test_an_operator_asks_and_another_test_is_refused(machine, acme, as_token):
    client = as_token(acme, Scope.OPERATE)
    answer = ask(client, instance=machine.pk, when_busy=True)
    assert answer.status_code == 202, answer.text
    action = AgentAction.objects.get()
    assert answer.json()["action"] == action.pk
    assert action.options["when_busy"] is True
    again = ask(client, instance=machine.pk)
    assert (again.status_code, again.json()["field"]) == (409, "instance")
    assert AgentAction.objects.count() == 1


def test_readers_and_other_teams_ask_for_none(machine, acme, rival, as_token):
    assert ask(as_token(acme, Scope.READ), instance=machine.pk).status_code == 403
    assert ask(as_token(rival, Scope.OPERATE), instance=machine.pk).status_code == 404
    assert not AgentAction.objects.exists()


def test_an_agent_that_does_not_offer_it_is_named(machine, acme, as_token):
    Agent.objects.update(actions=[])
    answer = ask(as_token(acme, Scope.OPERATE), instance=machine.pk)
    assert (answer.status_code, answer.json()["error"]) == (409, "not_offered")


def test_reports_are_found_by_machine_and_verdict(machine, acme, rival, as_token):
    AcceptanceReport.objects.create(instance=machine, verdict="short")
    client = as_token(acme)
    (row,) = client.get(ADDRESS, {"instance": machine.pk, "verdict": "short"}).json()["results"]
    assert row["evidence"].startswith("Test of a rented machine")
    assert client.get(ADDRESS, {"verdict": "pass"}).json()["results"] == []
    assert as_token(rival).get(ADDRESS).json()["results"] == []
