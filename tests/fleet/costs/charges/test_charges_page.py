"""Costs → Charges and `/api/v1/charges/`: typed, ended, removed; seen by the team alone, changed by who operates."""

from __future__ import annotations

from decimal import Decimal

import pytest
import time_machine

from fleet.costs.book.models import LedgerInterval
from fleet.costs.charges.models import TypedCharge
from fleet.inventory.models import ProviderAccount
from tests.fleet.costs.charges.test_charges import NOVEMBER, NOW

PAGE = "/t/acme/costs/charges/"
API = "/api/v1/charges/"


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def charge(acme, account, as_user, bob):
    as_user(bob).post(PAGE, typed(account))
    return TypedCharge.objects.get()


def typed(account, **fields):
    return {
        "account": account.pk,
        "kind": "network_volume",
        "name": "vol-data",
        "price": "0.07",
        "unit": "gb_month",
        "quantity": "500",
        "currency": "USD",
        "starts_at": "2026-11-01T00:00",
        **fields,
    }


def test_it_is_typed_on_the_page(charge, as_user, vera):
    assert (charge.price, charge.quantity, charge.starts_at, charge.created_by.username) == (
        Decimal("0.07"),
        Decimal(500),
        NOVEMBER,
        "bob",
    )
    page = as_user(vera).get(PAGE).content.decode()
    assert "vol-data" in page
    assert "500 × $0.07" in page
    assert "Add a charge" not in page


def test_an_empty_page_says_what_charges_are_for(as_user, vera):
    assert "Nobody has typed a charge" in as_user(vera).get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("price", "-1", "greater than or equal to 0"),
        ("quantity", "0", "Give more than 0."),
        ("currency", "dollars", "Give the three letters of a currency, as USD."),
        ("starts_at", "yesterday", "Enter a valid date/time."),
        ("ends_at", "2026-10-01T00:00", "It ends before it begins"),
        ("account", "999999", "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field_and_nothing_is_lost(acme, account, as_user, bob, field, value, words):
    answer = as_user(bob).post(PAGE, {**typed(account), field: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert words in page
    assert 'value="vol-data"' in page
    assert not TypedCharge.objects.exists()


def test_a_second_one_in_that_time_is_refused_beside_its_name(charge, account, as_user, bob):
    answer = as_user(bob).post(PAGE, typed(account))
    assert (answer.status_code, "A charge of this name runs in that time already" in answer.content.decode()) == (
        422,
        True,
    )


def test_it_is_ended_and_removed_on_the_page(charge, as_user, bob):
    client = as_user(bob)
    client.post(f"{PAGE}{charge.pk}/end/", {"ends_at": "2026-11-15T00:00"})
    assert LedgerInterval.objects.get().period.upper.day == 15
    client.post(f"{PAGE}{charge.pk}/remove/", {"reason": "Typed twice"})
    assert not LedgerInterval.objects.exists()
    assert "Removed: Typed twice" in client.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("act", "fields"), [("end", {"ends_at": "soon"}), ("end", {"ends_at": "2026-10-01T00:00"}), ("remove", {})]
)
def test_a_bad_end_and_a_missing_reason_change_nothing(charge, as_user, bob, act, fields):
    assert as_user(bob).post(f"{PAGE}{charge.pk}/{act}/", fields).status_code == 422
    charge.refresh_from_db()
    assert (charge.ends_at, charge.removed_at) == (None, None)


def test_viewers_and_strangers_change_nothing(charge, account, as_user, vera, charlie):
    assert as_user(vera).post(PAGE, typed(account, name="b")).status_code == 403
    assert as_user(charlie).get(PAGE).status_code == 404
    assert as_user(charlie).post(f"{PAGE}{charge.pk}/remove/", {"reason": "x"}).status_code == 404
    rival = f"/t/rival/costs/charges/{charge.pk}/remove/"
    assert as_user(charlie).post(rival, {"reason": "x"}).status_code == 404
    assert TypedCharge.objects.filter(removed_at=None).count() == 1


def test_what_was_typed_is_text(account, as_user, bob):
    as_user(bob).post(PAGE, typed(account, name="<script>alert(1)</script>", note="<b>x</b>"))
    page = as_user(bob).get(PAGE).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;" in page


class TestOverTheApi:
    def send(self, client, address, **body):
        return client.post(address, body, content_type="application/json")

    def test_it_is_added_ended_and_removed(self, account, make_instance, as_user, bob):
        client, machine = as_user(bob), make_instance()
        body = typed(account, instance=machine.pk, starts_at="2026-11-01T00:00:00Z")
        row = self.send(client, API, **body)
        assert row.status_code == 201, row.content
        told = row.json()
        assert (told["price"], told["quantity"], told["ends_at"], told["instance"]) == (
            "0.0700000000",
            "500.000000",
            None,
            machine.pk,
        )
        ended = self.send(client, f"{API}{told['id']}/end/", ends_at="2026-11-20T00:00:00Z").json()
        assert ended["ends_at"] == "2026-11-20T00:00:00Z"
        removed = self.send(client, f"{API}{told['id']}/remove/", reason="Typed twice").json()
        assert (removed["removed_by"], removed["removed_reason"]) == ("bob", "Typed twice")
        assert client.get(API, {"removed": "true"}).json()["results"][0]["id"] == told["id"]
        assert client.get(API, {"running": "true"}).json()["results"] == []

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("price", "-1"),
            ("quantity", "0"),
            ("currency", "usd"),
            ("kind", "compute"),
            ("ends_at", "2026-10-01T00:00:00Z"),
        ],
    )
    def test_what_cannot_be_is_named(self, account, as_user, bob, field, value):
        body = typed(account, starts_at="2026-11-01T00:00:00Z", **{field: value})
        answer = self.send(as_user(bob), API, **body)
        assert (answer.status_code, field in answer.content.decode()) == (400, True)

    def test_another_teams_account_is_not_found(self, rival, as_user, bob):
        theirs = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
        body = typed(theirs, starts_at="2026-11-01T00:00:00Z")
        assert self.send(as_user(bob), API, **body).status_code == 404

    def test_viewers_read_and_strangers_see_nothing(self, charge, as_user, vera, charlie):
        assert as_user(vera).get(API).json()["results"][0]["name"] == "vol-data"
        assert self.send(as_user(vera), f"{API}{charge.pk}/remove/", reason="x").status_code == 403
        assert as_user(charlie).get(API).json()["results"] == []
        assert as_user(charlie).get(f"{API}{charge.pk}/").status_code == 404
