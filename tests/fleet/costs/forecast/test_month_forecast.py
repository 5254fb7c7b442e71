"""The forecast of a team's month, from rows: ledger, plans, holds, leases, rates of currencies, and the part of it that filters let through."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.budgets.models import Budget
from fleet.costs.forecast.forecast import Forecast, month_forecast
from fleet.costs.forecast.models import ForecastDay
from fleet.costs.spend.models import CostProgress, ExchangeRate
from fleet.costs.spend.spend import Where
from fleet.inventory.models import Hold, ProviderAccount
from fleet.inventory.plans.models import PlannedAction
from fleet.providers.base import Billing, InstanceState
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on


def parts(found: Forecast) -> dict[str, Decimal]:
    return {part.kind.value: round(part.amount, 6) for part in found.parts}


@pytest.fixture
def train(make_instance, charge, acme, account, summed):
    """One machine at $2 an hour that has cost $100 this month, of a provider that charges for the disks of stopped machines."""
    account.kind = "runpod"
    account.save()
    machine = make_instance(name="train-01", price_per_hour=Decimal(2), storage_price_per_hour=Decimal("0.1"))
    charge(machine, "2")
    spend_on(acme, on(10), 100, instance=machine)
    return machine


def planned(machine, verb: str, day: int, **more) -> PlannedAction:
    said = {"source": "test", "reason": "test", "notified_at": NOW, **more}
    return PlannedAction.objects.create(team=machine.team, instance=machine, verb=verb, due_at=november(day), **said)


def test_what_runs_goes_on_to_the_end_of_the_month(acme, train):
    found = month_forecast(team=acme, now=NOW)
    assert parts(found) == {"spent": 100, "running": 720}
    assert found.will_end == 820
    assert [(part.words, part.link) for part in found.parts] == [
        ("Spent so far", "/t/acme/costs/#went"),
        ("15.0 days at $2.00/h", "/t/acme/instances/"),
    ]


def test_what_is_not_summed_yet_is_forecast_from_where_the_sums_end(acme, train):
    found = month_forecast(team=acme, now=NOW + timedelta(hours=5))
    assert found.since == NOW
    assert found.will_end == 820


def test_sums_from_before_the_month_do_not_count_into_it(acme, train):
    CostProgress.objects.update(summed_until=november(1) - timedelta(days=3))
    assert parts(month_forecast(team=acme, now=NOW))["running"] == 1440


def test_a_planned_stop_saves_until_the_end_and_costs_the_disk(acme, train):
    planned(train, "stop", 21)
    assert parts(month_forecast(team=acme, now=NOW)) == {"spent": 100, "running": 720, "stops": -480 + 24}


@pytest.mark.parametrize("state", ["cancelled", "done", "failed"])
def test_a_plan_that_is_off_saves_nothing(acme, train, state):
    planned(train, "stop", 21, state=state)
    assert parts(month_forecast(team=acme, now=NOW)) == {"spent": 100, "running": 720}


def test_a_stop_that_a_budget_planned_saves_like_any(acme, train):
    planned(train, "stop", 21, source=Budget(pk=7).source)
    assert parts(month_forecast(team=acme, now=NOW)) == {"spent": 100, "running": 720, "stops": -480 + 24}


def test_a_stop_whose_owner_was_not_told_does_not_come(acme, train):
    planned(train, "stop", 21, notified_at=None)
    assert parts(month_forecast(team=acme, now=NOW)) == {"spent": 100, "running": 720}


@pytest.mark.parametrize(("until", "saved"), [(26, -240 + 12), (None, None), (18, -480 + 24)])
def test_a_hold_puts_a_planned_stop_off(acme, train, until, saved):
    planned(train, "stop", 21)
    Hold.objects.create(instance=train, kind="job", expires_at=until and november(until))
    assert parts(month_forecast(team=acme, now=NOW)).get("stops") == saved


def test_a_hold_that_was_ended_puts_off_nothing(acme, train):
    planned(train, "terminate", 21)
    Hold.objects.create(instance=train, kind="job", ended_at=NOW)
    assert parts(month_forecast(team=acme, now=NOW))["stops"] == -480


def test_a_lease_ends_all_of_a_machine(acme, train):
    train.expires_at = november(26)
    train.save()
    found = month_forecast(team=acme, now=NOW)
    assert parts(found) == {"spent": 100, "running": 720, "leases": -240}
    assert "1 lease that ends" in [part.words for part in found.parts]


def test_a_planned_start_costs_what_the_machine_costs(acme, make_instance, charge, summed):
    machine = make_instance(state=InstanceState.STOPPED, billing=Billing.STORAGE, price_per_hour=Decimal(3))
    charge(machine, "0.05", kind="disk_stopped")
    planned(machine, "start", 21)
    assert parts(month_forecast(team=acme, now=NOW)) == {"spent": 0, "disks": 18, "starts": 720}


def test_what_has_no_known_price_is_counted_and_not_added(acme, train, make_instance, charge):
    charge(make_instance(name="dark"), None)
    charge(make_instance(name="yuan", currency="CNY"), "14", currency="CNY")
    found = month_forecast(team=acme, now=NOW)
    assert found.unpriced == 2
    assert found.will_end == 820


def test_other_currencies_come_at_the_newest_rate(acme, train, make_instance, charge):
    charge(make_instance(name="yuan", currency="CNY"), "14", currency="CNY")
    for day, rate in ((1, "0.20"), (12, "0.14")):
        ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=on(day), rate=Decimal(rate))
    found = month_forecast(team=acme, now=NOW)
    assert parts(found)["running"] == 720 + Decimal("705.6")
    assert not found.unpriced


def test_what_ended_and_what_costs_nothing_is_not_in_it(acme, train, make_instance, charge):
    charge(make_instance(name="gone"), "9", until=november(12))
    charge(make_instance(name="off"), None, kind="nothing", unit="")
    found = month_forecast(team=acme, now=NOW)
    assert found.will_end == 820
    assert found.unpriced == 0


def test_the_money_of_another_team_is_in_no_forecast(acme, train, rival, charge):
    elsewhere = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
    charge(None, "100", kind="commitment", of=elsewhere)
    assert month_forecast(team=acme, now=NOW).will_end == 820
    assert month_forecast(team=rival, now=NOW).will_end == 36_000


def test_a_project_gets_its_share_of_a_split_machine(acme, train, project):
    spend_on(acme, on(15), 12, instance=train, project=project)
    spend_on(acme, on(15), 36, instance=train)
    found = month_forecast(team=acme, now=NOW, where=Where(projects=(project.pk,)))
    assert parts(found) == {"spent": 12, "running": 180}
    rest = month_forecast(team=acme, now=NOW, where=Where(projects=(None,)))
    assert rest.will_end + found.will_end == month_forecast(team=acme, now=NOW).will_end


def test_a_planned_stop_of_a_shared_machine_saves_only_the_share(acme, train, project):
    spend_on(acme, on(15), 12, instance=train, project=project)
    spend_on(acme, on(15), 36, instance=train)
    planned(train, "terminate", 21)
    assert parts(month_forecast(team=acme, now=NOW, where=Where(projects=(project.pk,))))["stops"] == -120


def test_a_machine_that_has_cost_nothing_yet_is_whose_it_is_attributed_to(
    acme, train, make_instance, charge, project, bob
):
    fresh, plain = make_instance(name="fresh"), make_instance(name="plain", owner=bob, labels={"use": "eval"})
    charge(fresh, "1", since=november(15))
    charge(plain, "5", since=november(15))
    AttributionSpan.objects.create(instance=fresh, period=(november(15), None), project=project, source="rule")
    assert parts(month_forecast(team=acme, now=NOW, where=Where(projects=(project.pk,)))) == {
        "spent": 0,
        "running": 360,
    }
    assert parts(month_forecast(team=acme, now=NOW, where=Where(owners=(bob.pk,)))) == {"spent": 0, "running": 1800}
    assert parts(month_forecast(team=acme, now=NOW, where=Where(labels={"use": "eval"}))) == {
        "spent": 0,
        "running": 1800,
    }


def test_an_account_has_its_machines_and_its_own_charges(acme, train, account, charge):
    other = ProviderAccount.objects.create(team=acme, kind="manual", name="Other")
    charge(None, "1", kind="commitment", of=other)
    spend_on(acme, on(15), 24, account=other, meter="commitment")
    assert month_forecast(team=acme, now=NOW, where=Where(accounts=(other.pk,))).will_end == 24 + 360
    assert month_forecast(team=acme, now=NOW, where=Where(accounts=(account.pk,))).will_end == 820


def keep(acme, scope: str, days: int) -> None:
    ForecastDay.objects.bulk_create(
        ForecastDay(
            team=acme,
            scope=scope,
            day=on(16) - timedelta(days=back),
            currency="USD",
            amount=Decimal(72),
            rates=["2"] * 4,
            by_age={"1": "24"},
            made_at=NOW,
        )
        for back in range(1, days + 1)
    )


@pytest.mark.parametrize(("days", "lines"), [(13, False), (40, True)])
def test_new_machines_are_a_line_from_a_fortnight_of_history_on(acme, train, days, lines):
    keep(acme, "team", days)
    found = month_forecast(team=acme, now=NOW)
    assert ("New machines, as in past weeks" in [part.words for part in found.parts]) is lines
    assert found.usual.measured is lines


def test_a_scope_learns_from_its_own_past(acme, train, project):
    keep(acme, "team", 40)
    where = Where(projects=(project.pk,))
    assert not month_forecast(team=acme, now=NOW, where=where).usual.measured
    keep(acme, f"project:{project.pk}", 40)
    assert month_forecast(team=acme, now=NOW, where=where).usual.measured
    assert not month_forecast(
        team=acme, now=NOW, where=Where(projects=(project.pk,), meters=("compute",))
    ).usual.measured


def test_the_number_of_queries_does_not_grow(
    acme, train, make_instance, charge, project, django_assert_max_num_queries
):
    for number in range(30):
        machine = make_instance(name=f"m{number}", expires_at=november(20 + number % 9))
        charge(machine, "1", since=november(2))
        planned(machine, "stop", 18)
        Hold.objects.create(instance=machine, kind="job", expires_at=november(19))
    with django_assert_max_num_queries(9):
        month_forecast(team=acme, now=NOW)
    with django_assert_max_num_queries(15):
        month_forecast(team=acme, now=NOW, where=Where(projects=(project.pk,)))
