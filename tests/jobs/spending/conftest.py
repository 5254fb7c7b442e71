"""Machines with prices in the ledger, and jobs that hold them for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.book.models import LedgerInterval, LedgerMeter
from jobs.book.models import Attempt, JobState
from tests.jobs.conftest import newest

START = datetime(2026, 11, 17, 8, tzinfo=UTC)
PLACE = [{"host": "198.51.100.7", "port": 22}]


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


@pytest.fixture
def rented(make_instance):
    """rented("a", price="2.40") is a machine that the ledger has at that price an hour since a day before START."""

    def make(name: str = "a", *, price: str | None = "2.40", currency: str = "USD", **fields):
        machine = make_instance(
            name=name, gpus=1, managed=True, ssh=PLACE, price_per_hour=price, currency=currency, **fields
        )
        priced(machine, price, since=at(-24), currency=currency)
        return machine

    return make


def priced(
    machine, price: str | None, *, since, until=None, kind="compute", unit="hour", quantity="1", currency="USD"
) -> LedgerInterval:
    meter, _made = LedgerMeter.objects.get_or_create(
        team=machine.team, account=machine.account, instance=machine, kind=kind, resource=""
    )
    return LedgerInterval.objects.create(
        meter=meter,
        period=DateTimeTZRange(since, until),
        unit=unit,
        unit_price=None if price is None else Decimal(price),
        quantity=Decimal(quantity),
        currency=currency,
        price_source="listing",
        seen_at=since,
        start_source="provider",
    )


@pytest.fixture
def held(begin):
    """held(0, 2, machine) is an attempt that held the machine from two hours after START; until None: it still does."""

    def make(since: float, until: float | None, *machines, **order) -> Attempt:
        attempt = newest(begin("true", *machines, **order))
        attempt.created_at = attempt.started_at = at(since)
        attempt.state, attempt.ended_at = JobState.RUNNING, None
        if until is not None:
            attempt.state, attempt.ended_at = JobState.SUCCEEDED, at(until)
        attempt.save()
        for node in attempt.nodes.all():
            assert node.hold is not None
            node.hold.started_at, node.hold.ended_at = attempt.created_at, attempt.ended_at
            node.hold.save()
        job = attempt.job
        job.state, job.started_at, job.ended_at = attempt.state, attempt.started_at, attempt.ended_at
        job.save()
        return attempt

    return make
