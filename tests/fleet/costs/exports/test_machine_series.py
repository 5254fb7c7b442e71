"""What machines cost this month, for Prometheus: what the page of costs says, by machine and currency."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.costs.exports.machine_families import machine_families
from fleet.costs.spend.spend import By, spend
from fleet.telemetry.giving.text import pieces
from tests.fleet.costs.seeding import spend_on

NOW = datetime(2026, 11, 17, 8, tzinfo=UTC)
COST = "rackrent_instance_cost_total"


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=1)


def page_of(*teams, now=NOW):
    return b"".join(pieces(machine_families([team.pk for team in teams], now))).decode()


def figures(page, name):
    lines = [line for line in page.splitlines() if line.startswith(name)]
    return [Decimal(line.rsplit(" ", 1)[1]) for line in lines]


def test_it_agrees_with_the_page_of_costs(acme, machine):
    spend_on(acme, date(2026, 11, 3), "30.25", instance=machine)
    spend_on(acme, date(2026, 11, 4), "1.5", instance=machine, meter="minimum")
    spend_on(acme, date(2026, 10, 31), "99", instance=machine)
    found = spend(team=acme, start=date(2026, 11, 1), end=date(2026, 12, 1), by=(By.MACHINE,))
    assert figures(page_of(acme), COST) == [found.rows[(machine.pk,)].total] == [Decimal("31.75")]


def test_currencies_stay_apart(acme, machine):
    spend_on(acme, date(2026, 11, 3), "30", instance=machine)
    spend_on(acme, date(2026, 11, 3), "7", instance=machine, currency="CNY")
    page = page_of(acme)
    assert figures(page, COST) == [7, 30]
    assert 'instance="train-01"' in page
    assert 'currency="CNY"' in page


def test_what_never_had_a_price_has_no_cost(acme, machine):
    spend_on(acme, date(2026, 11, 3), "0", instance=machine, seconds=3600, unpriced_seconds=3600)
    page = page_of(acme)
    assert COST not in page
    assert figures(page, "rackrent_instance_unpriced_seconds_total") == [3600]


def test_a_machine_that_is_gone_stays_until_the_month_of_its_team_ends(acme, machine):
    machine.gone_at = NOW - timedelta(days=2)
    machine.save()
    spend_on(acme, date(2026, 11, 3), "30", instance=machine)
    assert figures(page_of(acme), COST) == [30]
    late = datetime(2026, 11, 30, 20, tzinfo=UTC)
    assert figures(page_of(acme, now=late), COST) == [30]
    acme.time_zone = "Asia/Shanghai"
    acme.save()
    assert page_of(acme, now=late) == ""


def test_another_team_has_its_own(acme, rival, machine):
    spend_on(acme, date(2026, 11, 3), "30", instance=machine)
    assert page_of(rival) == ""
    assert page_of() == ""
