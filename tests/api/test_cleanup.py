"""What the cleanup page shows, over the API, and who may say that machines are gone."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.teams.models import Scope

API = "/api/v1/cleanup/"


@pytest.fixture
def lost(make_instance) -> Instance:
    machine: Instance = make_instance(name="lost", doubted_since=timezone.now())
    return machine


@pytest.fixture
def body(lost):
    return {"instances": [lost.pk], "reason": "deleted in the console"}


def test_a_ghost_is_told_with_its_evidence(lost, acme, as_token):
    (row,) = as_token(acme, Scope.READ).get(API).json()["results"]
    assert (row["kind"], row["instance"], row["per_month"]) == ("ghost", lost.pk, None)
    assert "leaves it out together with most others" in row["evidence"]


def test_an_operator_says_that_it_is_gone(lost, body, acme, as_token):
    answer = as_token(acme, Scope.OPERATE).post(API, body, "application/json")
    assert answer.json() == {"machines": 0, "per_month": [], "unpriced": 0, "results": []}
    assert Instance.objects.get(pk=lost.pk).reason == "a person said that it is gone"


def test_nobody_of_another_team_and_not_without_a_reason(lost, body, acme, rival, as_token):
    assert as_token(rival, Scope.ADMIN).post(API, body, "application/json").status_code == 404
    answer = as_token(acme, Scope.OPERATE).post(API, {**body, "reason": ""}, "application/json")
    assert (answer.status_code, "reason" in answer.text) == (400, True)
    assert Instance.objects.get(pk=lost.pk).gone_at is None
