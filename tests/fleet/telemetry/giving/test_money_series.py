"""Prices of machines: decimal digits, and nothing where nobody knows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Billing
from tests.fleet.telemetry.giving.conftest import NOW, series, values

HOUR = timedelta(hours=1)
PRICE = "rackrent_instance_price_per_hour"


@pytest.fixture
def cloud(acme):
    return ProviderAccount.objects.create(team=acme, kind="aws", name="AWS")


@pytest.fixture
def seen(make_instance, cloud):
    """seen(…) is a machine that was last listed at NOW."""

    def make(**fields):
        return make_instance(account=cloud, name="spot-01", last_seen_at=NOW, **fields)

    return make


def test_the_price_is_on_the_page(acme, machine, page_of):
    ((labels, price),) = series(page_of(acme))[PRICE]
    assert (labels["currency"], labels["instance"], price) == ("USD", "train-01", 8.5)


def test_without_a_price_there_is_none(acme, seen, page_of):
    seen(price_per_hour=None)
    assert PRICE not in page_of(acme)


def test_a_machine_that_is_gone_is_off_the_page(acme, seen, page_of):
    seen(price_per_hour=4, gone_at=NOW - timedelta(hours=2))
    assert page_of(acme) == ""


def test_a_price_that_no_listing_confirms_is_absent(acme, seen, page_of):
    seen(price_per_hour=4)
    assert list(values(page_of(acme), PRICE)) == [4]
    assert list(values(page_of(acme, now=NOW + timedelta(minutes=16)), PRICE)) == []


def test_a_machine_that_bills_nothing_costs_nothing(acme, seen, page_of):
    seen(billing=Billing.NONE, price_per_hour=4)
    assert list(values(page_of(acme), PRICE)) == [0]
