"""Money of other currencies: at the rate of its day, either way round, and by itself where there is none."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from fleet.costs.spend.models import ExchangeRate
from fleet.costs.spend.spend import By, Spend, spend
from fleet.costs.spend.tally import add_up
from fleet.states import GpuState
from fleet.teams.models import Team
from tests.fleet.costs.seeding import spend_on

MAY, JUNE = date(2026, 5, 1), date(2026, 6, 1)


def rate(team: Team, currency: str, into: str, day: date, value: str) -> None:
    ExchangeRate.objects.create(team=team, currency=currency, into=into, day=day, rate=value, source="a table")


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01")


@pytest.fixture
def may(acme, machine):
    """10 CNY on each day of May, and 1 USD on the first."""
    for number in range(31):
        spend_on(acme, date(2026, 5, 1 + number), "10", instance=machine, currency="CNY", state=GpuState.FREE)
    spend_on(acme, MAY, "1", instance=machine)


def every_way(team: Team, currency: str = "") -> list[Spend]:
    """Of group days, of months, of machines' days."""
    return [
        spend(team=team, start=MAY, end=JUNE, by=by, currency=currency)
        for by in ([], [By.MACHINE], [By.DAY, By.MACHINE], [By.METER, By.STATE])
    ]


def test_each_day_is_converted_at_the_newest_rate_of_its_day(acme, may):
    rate(acme, "CNY", "USD", date(2026, 1, 1), "0.1")
    rate(acme, "CNY", "USD", date(2026, 5, 11), "0.2")
    for found in every_way(acme):
        assert found.all.total == 1 + 10 * 1 + 21 * 2
        assert found.all.amounts == {"CNY": 310, "USD": 1}
        assert found.all.states[GpuState.FREE] == 52
        assert found.all.unconverted == {}
        assert add_up([one.total for one in found.rows.values()]) in {found.all.total, 0}
        assert [(one.currency, one.day, one.rate) for one in found.rates] == [
            ("CNY", date(2026, 1, 1), Decimal("0.1")),
            ("CNY", date(2026, 5, 11), Decimal("0.2")),
        ]


def test_a_rate_that_holds_all_month_converts_months(acme, may):
    rate(acme, "CNY", "USD", MAY, "0.125")
    assert {found.all.total for found in every_way(acme)} == {Decimal("39.75")}


def test_the_other_way_round_counts_only_where_it_is_the_only_one(acme, may):
    rate(acme, "USD", "CNY", date(2026, 4, 1), "8")
    rate(acme, "USD", "CNY", date(2026, 5, 20), "4")
    rate(acme, "CNY", "USD", date(2026, 5, 11), "0.2")
    for found in every_way(acme):
        assert found.all.total == Decimal(1) + 10 * Decimal("1.25") + 21 * 2
        assert [(one.currency, one.into, one.rate) for one in found.rates] == [
            ("USD", "CNY", 8),
            ("CNY", "USD", Decimal("0.2")),
        ]


def test_thirds_add_up_too(acme, may):
    rate(acme, "USD", "CNY", MAY, "3")
    rate(acme, "USD", "CNY", date(2026, 5, 7), "7")
    assert len({found.all.total for found in every_way(acme)}) == 1
    by_day = spend(team=acme, start=MAY, end=JUNE, by=[By.DAY])
    assert add_up([one.total for one in by_day.rows.values()]) == by_day.all.total
    assert round(by_day.all.total, 12) == round(Decimal(1) + Decimal(60) / 3 + Decimal(250) / 7, 12)


def test_days_before_the_first_rate_stay_by_themselves(acme, may):
    rate(acme, "CNY", "USD", date(2026, 5, 30), "0.1")
    for found in every_way(acme):
        assert found.all.total == 1 + 2
        assert found.all.unconverted == {"CNY": 290}
        assert found.all.amounts == {"CNY": 310, "USD": 1}


def test_without_a_rate_nothing_is_converted_and_nothing_is_lost(acme, may):
    for found in every_way(acme):
        assert found.all.total == 1
        assert found.all.unconverted == {"CNY": 310}
        assert found.rates == ()


def test_another_currency_than_the_teams_can_be_asked_for(acme, may):
    rate(acme, "CNY", "USD", MAY, "0.125")
    for found in every_way(acme, "CNY"):
        assert found.currency == "CNY"
        assert found.all.total == 318


def test_rates_of_others_convert_nothing(acme, rival, may):
    rate(rival, "CNY", "USD", MAY, "0.125")
    assert spend(team=acme, start=MAY, end=JUNE).all.unconverted == {"CNY": 310}
