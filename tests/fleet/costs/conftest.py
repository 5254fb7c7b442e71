"""Rows of the ledger, and money that is summed until the now of november.py."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.costs.spend.models import CostProgress
from fleet.inventory.models import Instance, ProviderAccount
from tests.fleet.costs.november import NOW, START


@pytest.fixture
def summed(acme):
    """The sums of acme reach to now."""
    return CostProgress.objects.create(team=acme, summed_until=NOW, time_zone="UTC")


@pytest.fixture
def charge(account: ProviderAccount):
    """charge(machine, "2.50") opens an interval of its compute; `until` closes it."""

    def begin(
        machine: Instance | None,
        price: str | None,
        *,
        kind: str = "compute",
        unit: str = "hour",
        since: datetime = START,
        until: datetime | None = None,
        quantity: int = 1,
        currency: str = "USD",
        of: ProviderAccount | None = None,
    ) -> LedgerInterval:
        owned = of or (machine.account if machine else account)
        meter, _made = LedgerMeter.objects.get_or_create(
            team=owned.team, account=owned, instance=machine, kind=kind, resource=""
        )
        return LedgerInterval.objects.create(
            meter=meter,
            period=DateTimeTZRange(since, until),
            unit=unit,
            unit_price=None if price is None else Decimal(price),
            quantity=quantity,
            currency=currency,
            price_source="listing",
            seen_at=since,
            start_source="provider",
        )

    return begin
