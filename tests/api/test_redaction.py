from __future__ import annotations

from types import SimpleNamespace

import pytest

from fleet.inventory.api import accounts
from fleet.providers.base import Field
from fleet.teams.models import Scope
from tests.api.resources import LISTS


@pytest.fixture
def adapter(monkeypatch):
    fields = (Field(name="regions", label="Regions"), Field(name="secret", label="Secret key", secret=True))
    monkeypatch.setattr(accounts, "adapters", lambda: {"aws": SimpleNamespace(fields=fields)})


def test_an_account_shows_only_what_its_adapter_declares_as_no_secret(adapter, fleet, acme, as_token):
    fleet.account.options = {"regions": "us-east-1", "secret": "hush", "left_over": "hush"}
    fleet.account.save()
    answer = as_token(acme, Scope.ADMIN).get(f"/api/v1/accounts/{fleet.account.pk}/")
    assert answer.json()["options"] == {"regions": "us-east-1"}


def test_an_account_of_an_unknown_adapter_shows_no_options(adapter, fleet, acme, as_token):
    fleet.account.kind = "gone"
    fleet.account.save()
    assert as_token(acme, Scope.ADMIN).get(f"/api/v1/accounts/{fleet.account.pk}/").json()["options"] == {}


@pytest.mark.parametrize("address", [*LISTS, "/api/v1/me/"])
def test_no_answer_holds_a_secret(adapter, fleet, acme, make_token, client, address):
    secret, row = make_token(acme, Scope.ADMIN)
    text = client.get(address, headers={"Authorization": f"Bearer {secret}"}).text
    assert not [
        word for word in (secret, row.token_hash, "sealed", "hush", "token_hash", "credentials") if word in text
    ]
