"""Budgets over the API: whose they are, who writes them, and what a mistake is told."""

from __future__ import annotations

import pytest

from fleet.costs.budgets.models import Budget
from fleet.teams.models import AuditEntry, Scope

BUDGETS = "/api/v1/budgets/"


@pytest.fixture
def send(acme, as_token):
    client = as_token(acme, Scope.ADMIN)
    return lambda body, address=BUDGETS, method="post": getattr(client, method)(address, body, content_type="application/json")  # fmt: skip


def test_one_is_added_read_changed_and_removed(send, project, as_token, acme):
    added = send({"amount": "5000", "project": "vision", "hard": True, "actual_thresholds": [80]})
    assert added.status_code == 201
    assert (added.json()["name"], added.json()["currency"], added.json()["actual_thresholds"]) == ("Vision", "USD", [80, 100])  # fmt: skip
    address = f"{BUDGETS}{added.json()['id']}/"
    whole = as_token(acme).get(address).json()
    assert (whole["spent"], whole["closed"], whole["reached"]) == ("0.00", False, [])
    changed = send({"amount": "8000.00"}, address, "patch")
    assert (changed.status_code, changed.json()["amount"], changed.json()["hard"]) == (200, "8000.00", True)
    assert send({}, address, "delete").status_code == 204
    assert as_token(acme).get(address).status_code == 404
    assert list(AuditEntry.objects.filter(target_type="Budget").order_by("pk").values_list("action", flat=True)) == [
        "budget.add",
        "budget.update",
        "budget.remove",
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "5", "project": "nowhere"}, "project"),
        ({"amount": "5", "owner": "charlie"}, "owner"),
        ({"amount": "5", "period": "custom"}, "starts_on"),
        ({"amount": "5", "stops": True}, "stops"),
        ({"amount": "5", "colour": "red"}, "colour"),
    ],
)
def test_mistakes_name_their_field(send, charlie, body, field):
    answer = send(body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not Budget.objects.exists()


def test_admins_write(acme, as_user, bob, charlie, as_token):
    one = Budget.objects.create(team=acme, name="All", amount=1, currency="USD")
    asked = {"amount": "5"}
    for client in (as_user(bob), as_token(acme, Scope.OPERATE)):
        assert client.post(BUDGETS, asked, content_type="application/json").status_code == 403
        assert client.patch(f"{BUDGETS}{one.pk}/", asked, content_type="application/json").status_code == 403
    assert as_user(charlie).patch(f"{BUDGETS}{one.pk}/", asked, content_type="application/json").status_code == 404
    assert as_user(charlie).get(BUDGETS).json()["results"] == []
