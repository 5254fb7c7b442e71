"""Prices and costs: decimal digits, no currency added to another, and nothing where nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.inventory.models import Instance, Observation, ProviderAccount
from fleet.inventory.spent import spent_this_month
from fleet.providers.base import Billing
from tests.fleet.telemetry.giving.conftest import NOW, series, values

HOUR = timedelta(hours=1)
PRICE = "rackrent_instance_price_per_hour"


@pytest.fixture
def cloud(acme):
    return ProviderAccount.objects.create(team=acme, kind="aws", name="AWS")


@pytest.fixture
def seen(make_instance, cloud):
    """seen(hours, …): a machine with observations so many hours before NOW, each (hours, billing, price); last listed at NOW."""

    def make(*shown, last_seen_at=NOW, **fields):
        machine = make_instance(account=cloud, name="spot-01", last_seen_at=last_seen_at, **fields)
        for hours, billing, price, *rest in shown:
            Observation.objects.create(
                instance=machine,
                seen_at=NOW - hours * HOUR,
                state="running",
                billing=billing,
                price_per_hour=price,
                storage_price_per_hour=Decimal("0.1"),
                currency=rest[0] if rest else "USD",
                listed=not (len(rest) > 1 and rest[1] == "missing"),
                rule_version=1,
            )
        return machine

    return make


def spent(machine, now=NOW):
    return [(one.currency, one.amount, one.unpriced_seconds) for one in spent_this_month([machine.pk], now=now)]


def test_price_and_cost_are_on_the_page(acme, machine, page_of):
    found = series(page_of(acme))
    ((labels, price),) = found[PRICE]
    assert (labels["currency"], labels["instance"], price) == ("USD", "train-01", 8.5)
    assert found["rackrent_instance_cost_total"][0][1] == 17
    assert found["rackrent_instance_unpriced_seconds_total"][0][1] == 0


def test_every_span_has_its_own_price(seen):
    machine = seen((6, Billing.FULL, 4), (4, Billing.FULL, 2), (2, Billing.STORAGE, 2), (1, Billing.NONE, 2))
    assert spent(machine) == [("USD", Decimal(2 * 4 + 2 * 2) + Decimal("0.1"), 0)]


def test_time_counts_as_far_as_listings_go(seen):
    assert spent(seen((6, Billing.FULL, 4), last_seen_at=NOW - HOUR)) == [("USD", 20, 0)]


def test_a_span_without_a_price_is_unpriced_and_not_free(seen):
    machine = seen((6, Billing.FULL, None), (4, Billing.FULL, 2), (1, Billing.UNKNOWN, 2))
    assert spent(machine) == [("USD", 6, 3 * 3600)]


def test_without_any_price_there_is_no_cost(acme, seen, page_of):
    seen((6, Billing.FULL, None))
    page = page_of(acme)
    assert "rackrent_instance_cost_total" not in page
    assert PRICE not in page
    assert list(values(page, "rackrent_instance_unpriced_seconds_total")) == [6 * 3600]


def test_what_a_listing_did_not_name_counts_for_nothing(seen):
    machine = seen((6, Billing.FULL, 4), (5, Billing.FULL, 4, "USD", "missing"), (3, Billing.FULL, 4))
    assert spent(machine) == [("USD", 4 + 12, 0)]


def test_the_month_begins_anew_with_what_held_before_it(seen):
    start = datetime(2026, 11, 1, tzinfo=UTC)
    machine = seen((2_000, Billing.FULL, 9), (1_000, Billing.FULL, 4))
    assert spent(machine) == [("USD", 4 * Decimal((NOW - start) / HOUR), 0)]


def test_currencies_stay_apart(seen):
    machine = seen((6, Billing.FULL, 4), (5, Billing.FULL, 30, "CNY"))
    assert spent(machine) == [("CNY", 150, 0), ("USD", 4, 0)]


def test_a_typed_machine_costs_up_to_now(machine):
    Instance.objects.filter(pk=machine.pk).update(last_seen_at=NOW - 2 * HOUR)
    assert spent(machine) == [("USD", 17, 0)]


def test_a_machine_that_is_gone_keeps_its_cost_of_the_month(acme, seen, page_of):
    seen((6, Billing.FULL, 4), (2, Billing.NONE, 4), gone_at=NOW - 2 * HOUR, last_seen_at=NOW - 2 * HOUR)
    page = page_of(acme)
    assert list(values(page, "rackrent_instance_cost_total")) == [16]
    assert PRICE not in page
    assert "rackrent_instance_gpus" not in page
    assert page_of(acme, now=NOW + timedelta(days=40)) == ""


def test_a_price_that_no_listing_confirms_is_absent(acme, seen, page_of):
    seen((6, Billing.FULL, 4), price_per_hour=4)
    assert list(values(page_of(acme), PRICE)) == [4]
    assert list(values(page_of(acme, now=NOW + timedelta(minutes=16)), PRICE)) == []


def test_a_machine_that_bills_nothing_costs_nothing(acme, seen, page_of):
    seen((6, Billing.NONE, 4), billing=Billing.NONE, price_per_hour=4)
    assert list(values(page_of(acme), PRICE)) == [0]
    assert list(values(page_of(acme), "rackrent_instance_cost_total")) == [0]
