"""Exchange rates over the API."""

from __future__ import annotations

from datetime import date

import pytest
import time_machine

from fleet.costs.spend.models import ExchangeRate
from fleet.teams.models import AuditEntry

ADDRESS = "/api/v1/exchange-rates/"
NEW = {"currency": "cny", "into": "USD", "day": "2026-11-02", "rate": "0.1389", "source": "the bank's table"}


@pytest.fixture(autouse=True)
def november():
    with time_machine.travel("2026-11-30T10:00:00Z", tick=False):
        yield


@pytest.fixture
def call(alice, as_user):
    client = as_user(alice)

    def send(method: str, address: str = ADDRESS, body: object = None):
        return getattr(client, method)(address, body, content_type="application/json")

    return send


def test_a_rate_is_kept_listed_and_removed(acme, call):
    made = call("post", body=NEW)
    assert made.status_code == 201
    row = made.json()
    assert (row["currency"], row["into"], row["day"], row["rate"]) == ("CNY", "USD", "2026-11-02", "0.1389000000")
    assert call("get", f"{ADDRESS}?currency=CNY").json()["results"] == [row]
    assert call("get", f"{ADDRESS}?currency=EUR").json()["results"] == []
    assert call("get", f"{ADDRESS}?until=2026-11-02").json()["results"] == []
    assert call("delete", f"{ADDRESS}{row['id']}/").status_code == 204
    assert not ExchangeRate.objects.exists()
    assert [entry.via for entry in AuditEntry.objects.all()] == ["api", "api"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"currency": "C1Y"}, "currency"),
        ({"into": "CNY"}, "into"),
        ({"rate": "0"}, "rate"),
        ({"day": "2026-12-05"}, "day"),
        ({"day": "soon"}, "day"),
        ({"currancy": "CNY"}, "currancy"),
    ],
)
def test_refusals_name_the_field(acme, call, wrong, field):
    answer = call("post", body=NEW | wrong)
    assert answer.status_code == 400
    assert field in answer.content.decode()
    assert not ExchangeRate.objects.exists()


def test_a_file_is_imported_whole_or_not_at_all(acme, call):
    good = "currency,into,day,rate\nCNY,USD,2026-11-01,0.13\nCNY,USD,2026-11-02,0.14\n"
    answer = call("post", f"{ADDRESS}import/", {"csv": good})
    assert (answer.status_code, answer.json()) == (200, {"rates": 2})
    answer = call("post", f"{ADDRESS}import/", {"csv": good + "CNY,USD,2026-11-03,much\nCNY,USD,never,1\n"})
    assert answer.status_code == 400
    assert "Line 4, rate: “much” is no rate." in answer.content.decode()
    assert "1 more to correct." in answer.content.decode()
    assert ExchangeRate.objects.count() == 2


def test_operators_only_read(acme, bob, charlie, as_user):
    ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate=1)
    client = as_user(bob)
    assert len(client.get(ADDRESS).json()["results"]) == 1
    assert client.post(ADDRESS, NEW, content_type="application/json").status_code == 403
    assert as_user(charlie).get(ADDRESS).json()["results"] == []
