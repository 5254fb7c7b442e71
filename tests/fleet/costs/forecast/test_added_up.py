"""Rates that the database adds up come to what every interval by itself comes to."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.costs.forecast.rates import Charged, charged_between, charged_together
from fleet.costs.forecast.reckoning.flows import added_up
from fleet.costs.forecast.reckoning.known import known_flows
from fleet.costs.ledger.intervals import Meter
from fleet.inventory.models import ProviderAccount
from tests.fleet.costs.november import NOW, november

SPAN = {"start": NOW, "end": november(30)}
FACTORS = {"USD": Decimal(1), "CNY": Decimal("0.1401")}
MOMENTS = [november(17), november(21, 5), november(30)]


@pytest.fixture
def machines(acme, account, make_instance, charge):
    """Five machines and an account's own charges: every unit, another currency, ends and beginnings within the span, prices nobody told."""
    found = [make_instance(name=f"m{number}") for number in range(5)]
    for number, machine in enumerate(found):
        charge(machine, f"1.00{number}3333333", since=november(2 + number))
        charge(machine, "0.07", kind="disk_running", unit="gb_month", quantity=333, since=november(3))
    charge(found[0], "0.2", kind="disk_stopped", since=november(4), until=november(20, 7))
    charge(found[1], "9", kind="minimum", unit="once", since=november(10), until=november(26))
    charge(found[2], "9", kind="licence", unit="once", since=november(12))
    charge(found[3], None, kind="licence", since=november(5))
    far = ProviderAccount.objects.create(team=acme, kind="autodl", name="Far", currency="CNY")
    charge(None, "8.88", kind="network_volume", unit="month", currency="CNY", of=far)
    charge(None, "99", kind="commitment", unit="month", currency="EUR", since=november(18))
    charge(None, "0.5", kind="commitment", unit="hour", of=far, since=november(19), until=november(25))
    return found


def comes_to(charged: Charged) -> dict[str, list[Decimal]]:
    changes, lumps = known_flows([rate for _account, rate in charged.rates], [], since=NOW)
    return {part.value: row for part, row in added_up(changes, lumps, since=NOW, at=MOMENTS).items()}


def test_it_comes_to_the_same(acme, machines):
    each = charged_between(team=acme, factors=FACTORS, **SPAN)
    for singly in ([], [machines[0].pk], [machine.pk for machine in machines]):
        together = charged_together(team=acme, factors=FACTORS, singly=singly, **SPAN)
        assert comes_to(together) == comes_to(each)
        assert together.unpriced == each.unpriced == 2


def test_machines_without_steps_are_one_rate(acme, machines):
    rates = [rate for _account, rate in charged_together(team=acme, factors=FACTORS, singly=[], **SPAN).rates]
    assert [rate.per_unit for rate in rates if rate.meter is Meter.COMPUTE] == [Decimal("5.0116666665")]
    assert all(rate.machine is None for rate in rates)


def test_machines_with_steps_keep_the_beginning_of_their_runs(acme, machines):
    rates = charged_together(team=acme, factors=FACTORS, singly=[machines[1].pk], **SPAN).rates
    own = [(rate.meter, rate.start) for _account, rate in rates if rate.machine == machines[1].pk]
    assert (Meter.COMPUTE, november(3)) in own
