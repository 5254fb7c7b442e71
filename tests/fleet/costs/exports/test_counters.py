"""Money for Prometheus: counters from the daily sums that never go back, of the caller's own teams."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest

from fleet.costs.budgets.models import Budget
from fleet.costs.exports.counting import budget_families, cost_families, count_costs
from fleet.costs.spend.models import CostGroupDay
from fleet.inventory.models import ProviderAccount
from fleet.states import GpuState
from fleet.telemetry.giving.text import pieces
from tests.fleet.costs.seeding import spend_on

DAY = date(2026, 11, 2)
NOW = datetime(2026, 11, 3, tzinfo=UTC)


@pytest.fixture
def told(acme):
    """told() is the page's lines about money: (name, meter) -> value."""

    def read(*teams) -> dict[tuple[str, str], str]:
        page = b"".join(pieces(cost_families([team.pk for team in teams or (acme,)], NOW))).decode()
        found = re.findall(r'^(\w+)\{.*meter="(\w+)".*\} (\S+)$', page, re.MULTILINE)
        return {(name, meter): value for name, meter, value in found}

    return read


def test_it_is_told_by_account_project_and_meter(acme, account, project, make_instance, told):
    machine = make_instance()
    spend_on(acme, DAY, "7.5", instance=machine, project=project, state=GpuState.FREE)
    spend_on(acme, DAY, "0.25", instance=machine, project=project, meter="disk_running")
    count_costs()
    assert told() == {
        ("rackrent_cost_total", "compute"): "7.5",
        ("rackrent_cost_total", "disk_running"): "0.25",
        ("rackrent_idle_cost_total", "compute"): "7.5",
        ("rackrent_idle_cost_total", "disk_running"): "0",
    }
    page = b"".join(pieces(cost_families([acme.pk], NOW))).decode()
    labels = f'account="By hand",account_id="{account.pk}",provider="manual",project="vision",meter="compute"'
    assert f'rackrent_cost_total{{{labels},currency="USD"}} 7.5' in page
    assert "# TYPE rackrent_cost_total counter" in page


def test_a_day_that_is_summed_again_to_less_takes_nothing_back(acme, make_instance, told):
    machine = make_instance()
    spend_on(acme, DAY, 10, instance=machine)
    count_costs()
    CostGroupDay.objects.update(amount=6, working_amount=6)
    assert count_costs() == 0
    assert told()["rackrent_cost_total", "compute"] == "10"
    spend_on(acme, date(2026, 11, 3), 3, instance=machine)
    count_costs()
    assert told()["rackrent_cost_total", "compute"] == "10"
    spend_on(acme, date(2026, 11, 4), 3, instance=machine)
    count_costs()
    assert told()["rackrent_cost_total", "compute"] == "12"


def test_a_credit_holds_up_no_other_meter(acme, account, make_instance, told):
    spend_on(acme, DAY, 10, instance=make_instance())
    spend_on(acme, DAY, -4, account=account, meter="adjustment", state=GpuState.UNKNOWN)
    count_costs()
    assert told()["rackrent_cost_total", "compute"] == "10"
    assert told()["rackrent_cost_total", "adjustment"] == "0"


def test_another_team_learns_nothing(acme, rival, make_instance, told):
    spend_on(acme, DAY, 10, instance=make_instance())
    count_costs()
    assert told(rival) == {}


def test_accounts_of_one_name_are_two_series(acme, rival, make_instance, told):
    for team in (acme, rival):
        account = ProviderAccount.objects.create(team=team, kind="lambda", name="Same")
        spend_on(team, DAY, 1, account=account)
    count_costs()
    page = b"".join(pieces(cost_families([acme.pk, rival.pk], NOW))).decode()
    series = [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series)) == 4


def test_what_is_left_of_budgets_is_a_gauge(acme, rival, alice, make_instance):
    spend_on(acme, DAY, 130, instance=make_instance())
    budget = Budget.objects.create(team=acme, name='Over "it"', amount=100, currency="USD", created_by=alice)
    page = b"".join(pieces(budget_families([acme.pk, rival.pk], NOW))).decode()
    labels = f'budget="Over \\"it\\"",budget_id="{budget.pk}",currency="USD"'
    assert f"rackrent_budget_remaining{{{labels}}} -30\n" in page
    assert "# TYPE rackrent_budget_remaining gauge" in page


def test_it_is_on_the_page_that_prometheus_reads(as_user, vera, acme, make_instance):
    spend_on(acme, DAY, 10, instance=make_instance())
    count_costs()
    page = as_user(vera).get("/api/v1/metrics/").getvalue().decode()
    assert "rackrent_cost_total{" in page
