"""What is written when thresholds are reached: a row each, once a period, anew after a change; and the alert that tells it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from fleet.alerts.models import Alert, AlertEvent
from fleet.alerts.words import title_of, why_of
from fleet.costs.budgets.judging import judge_all
from fleet.costs.budgets.manage import BudgetWords, remove_budget, update_budget
from fleet.costs.budgets.measuring import outlook_of
from fleet.costs.budgets.models import Crossing
from fleet.costs.spend.models import ExchangeRate
from tests.fleet.costs.budgets.conftest import NOON, TODAY

A_MONTH = 24 * 20


def reached():
    return list(Crossing.objects.order_by("pk").values_list("percent", flat=True))


def alert() -> Alert:
    return Alert.objects.select_related("team").get(cause="budget.reached")


def told():
    return list(AlertEvent.objects.filter(quiet="").order_by("pk").values_list("kind", "severity"))


def test_each_is_one_row_with_the_figures_of_its_moment(budget, spent, judge):
    vision = budget()
    spent(510)
    judge(vision)
    spent(100)
    judge(vision, 1)
    (row,) = Crossing.objects.all()
    assert (row.percent, row.basis, row.at, row.period_from) == (50, "actual", NOON, date(2026, 11, 1))
    assert [row.amount, row.spent, row.will_end] == [1000, 510, 510]


def test_judging_again_reaches_nothing_twice(budget, spent, judge):
    vision = budget()
    spent(850)
    assert judge_all(now=NOON) == 2
    assert judge_all(now=NOON) == 0
    assert reached() == [50, 80]
    assert judge(vision).standing


class TestWhatIsTold:
    def test_it_gets_worse_threshold_by_threshold(self, budget, spent, judge):
        vision = budget()
        for hours, amount in enumerate((500, 300, 200)):
            spent(amount)
            judge(vision, hours)
        assert told() == [("opened", "note"), ("worsened", "warning"), ("worsened", "urgent")]

    def test_what_is_reached_at_once_is_one_message(self, budget, spent, judge):
        vision = budget()
        spent(2000)
        judge(vision)
        assert told() == [("opened", "urgent")]
        assert title_of(alert()) == "Acme has reached a threshold of its budget"
        assert "100 % of the budget of $1,000.00 for November 2026 is spent: $2,000.00" in why_of(alert())

    def test_two_of_one_severity_are_both_told(self, budget, spent, judge):
        vision = budget(actual_thresholds=(80, 90))
        spent(800)
        judge(vision)
        spent(100)
        judge(vision, 1)
        assert told() == [("opened", "warning"), ("signal", "warning")]

    def test_a_refund_takes_it_back_and_only_well_below(self, budget, spent, judge):
        vision = budget()
        spent(510)
        judge(vision)
        spent(-20)
        judge(vision, 1)
        assert alert().closed_at is None
        spent(-20)
        judge(vision, 2)
        assert alert().closed_at is not None
        assert Crossing.objects.get().fell_back_at is not None

    def test_what_comes_back_is_no_second_crossing(self, budget, spent, judge):
        vision = budget()
        for hours, amount in enumerate((510, -100, 200)):
            spent(amount)
            judge(vision, hours)
        assert reached() == [50]
        assert Crossing.objects.get().fell_back_at is None
        assert alert().closed_at is None


class TestArmedAnew:
    def test_in_a_new_month(self, budget, spent, judge):
        vision = budget()
        spent(600)
        judge(vision)
        judge(vision, A_MONTH)
        assert alert().closed_at is not None
        spent(600, date(2026, 12, 2))
        judge(vision, A_MONTH)
        assert [(row.percent, row.period_from.month) for row in Crossing.objects.order_by("pk")] == [(50, 11), (50, 12)]

    def test_by_a_change_of_the_budget(self, budget, spent, judge, by_alice):
        vision = budget()
        spent(900)
        judge(vision)
        words = BudgetWords(amount=Decimal(1100), currency="USD", forecast_thresholds=())
        changed = update_budget(actor=by_alice, budget=vision, words=words, now=NOON)
        assert changed.revision == 2
        assert reached() == [50, 80, 50, 80]
        update_budget(actor=by_alice, budget=vision, words=words, now=NOON)
        assert len(reached()) == 4

    def test_a_raised_one_clears_what_no_longer_holds(self, budget, spent, judge, by_alice):
        vision = budget()
        spent(900)
        judge(vision)
        words = BudgetWords(amount=Decimal(9000), currency="USD", forecast_thresholds=())
        update_budget(actor=by_alice, budget=vision, words=words, now=NOON)
        assert alert().closed_at is not None

    def test_what_was_removed_is_judged_no_more(self, budget, spent, by_alice):
        vision = budget()
        spent(900)
        assert remove_budget(actor=by_alice, budget=vision, now=NOON)
        assert not remove_budget(actor=by_alice, budget=vision, now=NOON)
        assert judge_all(now=NOON) == 0


class TestScopes:
    def test_money_of_others_is_not_its(self, budget, spent, judge, project, bob):
        vision, own = budget(project=project), budget(owner=bob)
        spent(900)
        spent(600, project=project)
        spent(550, owner=bob)
        for one in (vision, own):
            judge(one)
        assert {row.budget.name: row.spent for row in Crossing.objects.select_related("budget")} == {
            "Vision": 600,
            "bob": 550,
        }

    def test_another_team_never(self, budget, spent, judge, rival):
        from fleet.inventory.models import ProviderAccount
        from tests.fleet.costs.seeding import spend_on

        theirs = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
        spend_on(rival, TODAY, 5000, account=theirs)
        judge(budget())
        assert reached() == []


class TestCurrencies:
    def test_what_has_a_rate_counts(self, budget, spent, judge, acme):
        ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate="0.14")
        vision = budget()
        spent(4000, currency="CNY")
        judge(vision)
        assert Crossing.objects.get().spent == 560

    def test_what_has_none_is_not_added_and_keeps_what_stands(self, budget, spent, judge):
        vision = budget()
        spent(500)
        judge(vision)
        spent(-100)
        spent(4000, currency="CNY")
        judge(vision)
        assert Crossing.objects.get().fell_back_at is None


class TestForecasts:
    @pytest.fixture
    def vision(self, budget):
        return budget(actual_thresholds=(), forecast_thresholds=(100,))

    def daily(self, spent, amount, days):
        for day in range(17 - days, 17):
            spent(amount, date(2026, 11, day))

    def test_it_needs_enough_history(self, vision, spent, judge):
        self.daily(spent, 300, 4)
        judge(vision)
        assert reached() == []
        spent(200, date(2026, 11, 12))
        judge(vision)
        row = Crossing.objects.get()
        assert [row.basis, row.percent, row.will_end] == ["forecast", 100, 1400]
        assert alert().severity == "warning"

    def test_it_fires_once_however_it_sways(self, vision, spent, judge):
        self.daily(spent, 200, 7)
        for hours, amount in enumerate((0, -4000, 4000)):
            spent(amount)
            judge(vision, hours)
        assert reached() == [100]
        assert alert().closed_at is not None


class TestOnesOwnPeriods:
    def test_days_outside_do_not_count(self, budget, spent, judge):
        vision = budget(period="custom", starts_on=date(2026, 11, 15), ends_on=date(2026, 12, 15))
        spent(900, date(2026, 11, 14))
        judge(vision)
        assert reached() == []
        spent(900, date(2026, 11, 15))
        judge(vision)
        assert reached() == [50, 80]

    def test_days_are_those_of_the_team(self, budget, spent, judge, acme):
        acme.time_zone = "Asia/Shanghai"
        acme.save()
        vision = budget(period="custom", starts_on=date(2026, 11, 15), ends_on=date(2026, 11, 18))
        spent(900)
        judge(vision, 3.9)
        assert reached() == [50, 80]
        judge(vision, 4)
        assert alert().closed_at is not None


def test_one_that_cannot_be_judged_keeps_no_other_from_it(budget, spent, monkeypatch, project):
    from fleet.costs.budgets import judging

    broken, _sound = budget(project=project), budget()
    real = outlook_of
    monkeypatch.setattr(judging, "outlook_of", lambda one, *more: 1 / 0 if one.pk == broken.pk else real(one, *more))
    spent(600)
    assert judge_all(now=NOON) == 1
