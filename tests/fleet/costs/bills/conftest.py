"""An account with a ledger of November 2026, written by hand, and bills for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.bills.taking import Found, take_bill
from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import BilledCharge, ChargeKind, Money
from fleet.teams.audit import Actor

NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)
NOW = datetime(2026, 12, 4, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def pods(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="runpod", name="RunPod", currency="USD")


@pytest.fixture
def write(pods):
    """write(instance, "compute", start, end, "2") is an interval of the ledger; without an instance, of `resource`."""

    def make(instance, kind, start, end, price, *, resource="", unit="hour", quantity=1, currency="USD", **edges):
        meter, _ = LedgerMeter.objects.get_or_create(
            team=pods.team, account=pods, instance=instance, kind=kind, resource=resource
        )
        return LedgerInterval.objects.create(
            meter=meter,
            period=DateTimeTZRange(start, end),
            unit=unit,
            unit_price=None if price is None else Decimal(price),
            quantity=quantity,
            currency=currency,
            price_source="listing",
            seen_at=start,
            start_source="provider",
            **edges,
        )

    return make


def charge(machine, day, amount, *, kind=ChargeKind.COMPUTE, days=1, line_id="", **more) -> BilledCharge:
    """A line of a bill of November, of a day by number."""
    start = more.pop("start", NOVEMBER + (day - 1) * DAY)
    end = more.pop("end", start + days * DAY)
    return BilledCharge(
        line_id=line_id or f"{machine}:{day}:{kind}:{more.get('resource', '')}",
        kind=kind,
        raw_kind=more.pop("raw_kind", str(kind)),
        start=start,
        end=end,
        amount=Money(Decimal(amount), more.pop("currency", "USD")),
        external_id=machine,
        **more,
    )


@pytest.fixture
def take(pods):
    """take([charge, …]) is a bill of the whole of November."""

    def do(charges, *, start=NOVEMBER, end=DECEMBER, complete=True, source="api", actor=None, now=NOW):
        found = Found(source, tuple(charges), start, end, complete=complete)
        return take_bill(actor=actor or Actor.system("bills"), account=pods, found=found, now=now)

    return do
