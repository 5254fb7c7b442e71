"""An account at a provider that tells its balance, and its machines."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.balances.models import BalanceReading, BalanceSource
from fleet.inventory.models import Instance
from fleet.inventory.poll import poll_account
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.provider_word.reading import claim_reading, ensure_readings, refresh_reading
from fleet.providers.base import Billing, Capability, InstanceState, Money, StopSemantics
from tests.fleet.inventory.conftest import NOON, Scripted, lab, listed, provider  # noqa: F401

__all__ = ["NOON", "Scripted"]


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def purse(provider, monkeypatch, clock):  # noqa: F811
    """`purse.left`: what the provider tells; an exception is raised."""

    def balance(self):
        if isinstance(provider.left, Exception):
            raise provider.left
        return Money(Decimal(provider.left), "USD")

    monkeypatch.setattr(provider, "balance", balance, raising=False)
    monkeypatch.setattr(provider, "left", "100", raising=False)
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.BALANCE})
    monkeypatch.setattr(provider, "semantics", StopSemantics(can_stop=True, zero_balance="machines are stopped"))
    return provider


@pytest.fixture
def rent(lab):  # noqa: F811
    """rent("a", "2.50") is a running machine of the account."""

    def make(name="a", price="2.50", **fields):
        values = {
            "state": InstanceState.RUNNING,
            "billing": Billing.FULL,
            "price_per_hour": price,
            "currency": "USD",
            "managed": True,
            "account": lab,
            **fields,
        }
        return Instance.objects.create(team=lab.team, name=name, external_id=name, **values)

    return make


@pytest.fixture
def read(purse, lab):  # noqa: F811
    """read(minutes=10) asks the provider so much later."""
    assert poll_account(account=lab, now=NOON).error is None

    def ask(minutes=0):
        ensure_readings()
        now = NOON + timedelta(minutes=minutes)
        reading = ProviderReading.objects.get(account=lab, subject="balance")
        assert claim_reading(reading.pk, seen_next_at=reading.next_at, now=now)
        return refresh_reading(
            reading=ProviderReading.objects.select_related("account__team").get(pk=reading.pk), now=now
        )

    return ask


@pytest.fixture
def told(lab, clock):  # noqa: F811
    """told("118") is a reading of now."""

    def write(amount, *, at=NOON, currency="USD", source=BalanceSource.PROVIDER, account=None):
        return BalanceReading.objects.create(
            account=account or lab, at=at, amount=amount, currency=currency, source=source
        )

    return write
