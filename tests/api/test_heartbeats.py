"""Runs say that they are alive: one hold a machine and caller, which lasts longer each time and is on record once."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from fleet.inventory.models import Hold
from fleet.teams.models import AuditEntry, Scope
from fleet.teams.throttles import WriteThrottle
from tests.api.conftest import NOW


@pytest.fixture
def address(fleet):
    return f"/api/v1/instances/{fleet.bare.pk}/heartbeat/"


def beat(client, address, minutes=5, **fields):
    return client.post(address, {"minutes": minutes, **fields}, content_type="application/json")


def test_it_is_placed_once_and_then_lasts_longer(acme, as_token, address):
    script = as_token(acme, Scope.OPERATE)
    with time_machine.travel(NOW, tick=False):
        told = beat(script, address, reason="run 7").json()
    with time_machine.travel(NOW + timedelta(minutes=4), tick=False):
        again = beat(script, address, reason="run 7, epoch 2").json()
    assert (told["kind"], told["owner"], told["expires_at"]) == ("heartbeat", None, "2026-11-30T08:05:00Z")
    assert (again["id"], again["reason"]) == (told["id"], "run 7, epoch 2")
    assert again["expires_at"] == "2026-11-30T08:09:00Z"
    assert AuditEntry.objects.filter(action="hold.place").count() == 1


def test_a_shorter_one_takes_nothing_from_a_longer(acme, as_token, address):
    script = as_token(acme, Scope.OPERATE)
    with time_machine.travel(NOW, tick=False):
        beat(script, address, minutes=60)
        assert beat(script, address, minutes=1).json()["expires_at"] == "2026-11-30T09:00:00Z"


def test_callers_have_one_each_and_one_that_ran_out_stays_on_record(acme, as_token, as_user, bob, address):
    one, other, person = as_token(acme, Scope.OPERATE), as_token(acme, Scope.OPERATE), as_user(bob)
    for client in (one, other, person, one):
        assert beat(client, address).status_code == 200
    beats = Hold.objects.filter(kind="heartbeat")
    assert sorted((hold.owner_id, hold.token_id is None) for hold in beats if hold.owner_id) == [(bob.pk, True)]
    assert beats.count() == 3
    beats.update(expires_at=timezone.now() - timedelta(minutes=1))
    beat(one, address)
    assert beats.count() == 4


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "minutes"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": 1441}, "minutes"),
        ({"minutes": 5, "reason": "x" * 201}, "reason"),
        ({"minutes": 5, "resaon": "x"}, "resaon"),
    ],
)
def test_bad_ones_are_named_and_place_nothing(acme, as_token, address, body, field):
    answer = as_token(acme, Scope.OPERATE).post(address, body, content_type="application/json")
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not Hold.objects.filter(kind="heartbeat").exists()


def test_who_only_reads_or_is_of_another_team_keeps_nothing_alive(acme, rival, as_token, address):
    answers = [
        beat(as_token(team, scope), address).status_code for team, scope in ((acme, Scope.READ), (rival, Scope.OPERATE))
    ]
    assert answers == [403, 404]


def test_many_runs_of_one_token_are_not_counted_as_writes(acme, as_token, address, monkeypatch):
    monkeypatch.setattr(WriteThrottle, "rate", "1/hour", raising=False)
    script = as_token(acme, Scope.OPERATE)
    assert {beat(script, address).status_code for _number in range(4)} == {200}
