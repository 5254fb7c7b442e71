"""From the ledger to the totals: money follows spans and shares, and a re-attribution says what it moved."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.attribution.again import reattribute, settle_reattributions
from fleet.costs.attribution.divide import divide_hours
from fleet.costs.attribution.models import MachineSplit
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import By, spend
from fleet.inventory.models import Hold, HoldKind
from tests.fleet.costs.attribution.conftest import HOUR, NOON

DAY = NOON.date()


@pytest.fixture
def paid(acme, machine):
    """A machine at 2 an hour, from eight in the morning until noon."""

    def make():
        instance = machine(since=NOON - 4 * HOUR)
        meter = LedgerMeter.objects.create(team=acme, account=instance.account, instance=instance, kind="compute")
        LedgerInterval.objects.create(
            meter=meter,
            period=DateTimeTZRange(NOON - 4 * HOUR, NOON),
            unit="hour",
            unit_price=2,
            currency="USD",
            price_source="typed",
            seen_at=NOON,
            start_source="typed",
        )
        return instance

    return make


def by_whose(team) -> dict[tuple[object, ...], Decimal]:
    tomorrow = (NOON + 24 * HOUR).date()
    rows = spend(team=team, start=DAY, end=tomorrow, by=(By.PROJECT, By.OWNER)).rows
    return {whose: one.total for whose, one in rows.items()}


def test_what_a_re_attribution_moved(acme, paid, project, alice, by):
    instance = paid()
    sync_attribution(team=acme, now=NOON - 4 * HOUR)
    sum_costs(now=NOON)
    assert by_whose(acme) == {(None, None): 8}
    entry = reattribute(
        actor=by(alice), team=acme, instances=[instance.pk], start=NOON - 3 * HOUR, until=NOON, project=project,
        owner=None, reason="It was for Vision.", now=NOON,
    )  # fmt: skip
    assert settle_reattributions(team=acme) == 0
    sum_costs(now=NOON)
    assert by_whose(acme) == {(project.pk, None): 6, (None, None): 2}
    assert settle_reattributions(team=acme) == 1
    entry.refresh_from_db()
    amounts = [
        {row["project"]: Decimal(row["amounts"]["USD"]) for row in side} for side in (entry.before, entry.after or [])
    ]
    assert amounts == [{None: 8}, {project.pk: 6, None: 2}]


def test_a_split_machine_leaves_the_rest_to_nobody_as_idle(acme, paid, alice, bob):
    instance = paid()
    MachineSplit.objects.create(instance=instance, split="holds")
    sync_attribution(team=acme, now=NOON - 4 * HOUR)
    for owner, start in ((alice, NOON - 4 * HOUR), (bob, NOON - 2 * HOUR)):
        Hold.objects.create(
            instance=instance, kind=HoldKind.PERSON, owner=owner, started_at=start, ended_at=NOON - HOUR
        )
    divide_hours(team=acme, now=NOON)
    sum_costs(now=NOON)
    assert by_whose(acme) == {(None, alice.pk): 5, (None, bob.pk): 1, (None, None): 2}
