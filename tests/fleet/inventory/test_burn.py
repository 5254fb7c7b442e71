"""Money now: price x now, per currency, and what nobody knows is counted, not left out."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.inventory.prices import burn, price_now
from fleet.providers.base import Billing
from tests.fleet.inventory.conftest import NOON


@pytest.fixture
def machine(make_instance):
    numbers = iter(range(100))

    def make(billing: Billing, price: str | None = None, disks: str | None = None, **fields):
        return make_instance(
            name=f"m-{next(numbers)}",
            billing=billing,
            price_per_hour=Decimal(price) if price else None,
            storage_price_per_hour=Decimal(disks) if disks else None,
            **fields,
        )

    return make


def test_running_machines_cost_their_price_and_stopped_ones_their_disks(machine):
    fleet = [machine(Billing.FULL, "2.50", "0.10"), machine(Billing.STORAGE, "9.00", "0.20")]
    assert burn(fleet).amounts == {"USD": Decimal("2.70")}


def test_currencies_are_never_added(machine):
    fleet = [machine(Billing.FULL, "2"), machine(Billing.FULL, "7", currency="CNY")]
    assert burn(fleet).amounts == {"USD": 2, "CNY": 7}


def test_an_unknown_price_is_counted(machine):
    fleet = [
        machine(Billing.FULL),
        machine(Billing.STORAGE, "9"),
        machine(Billing.UNKNOWN, "1"),
        machine(Billing.FULL, "1"),
    ]
    figure = burn(fleet)
    assert (figure.amounts, figure.unpriced) == ({"USD": Decimal(1)}, 3)


def test_what_is_not_billed_or_gone_costs_nothing(machine):
    fleet = [machine(Billing.NONE, "9"), machine(Billing.NONE), machine(Billing.FULL, "9", gone_at=NOON)]
    figure = burn(fleet)
    assert (figure.amounts, figure.unpriced) == ({}, 0)


def test_the_age_of_the_figure_is_that_of_its_oldest_price(machine):
    fleet = [
        machine(Billing.FULL, "1", priced_at=NOON),
        machine(Billing.FULL, "1", priced_at=NOON - timedelta(hours=1)),
        machine(Billing.FULL, "1"),
    ]
    assert burn(fleet).oldest_priced_at == NOON - timedelta(hours=1)


@pytest.mark.parametrize(("billing", "hour"), [("full", 2), ("storage", 1), ("none", 0), ("unknown", None)])
def test_the_price_of_the_present_state(make_instance, billing, hour):
    machine = make_instance(billing=billing, price_per_hour=Decimal(2), storage_price_per_hour=Decimal(1))
    assert price_now(machine) == hour
