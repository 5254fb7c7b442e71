"""The queue of what is to be summed: changes, late hours, backlogs, and that nothing of it is lost or counted twice."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.book.models import LedgerChange, LedgerInterval
from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.models import CostDay, CostGroupDay, CostMonth, CostProgress
from fleet.costs.spend.roll import Wanted, next_step, sum_costs
from fleet.costs.spend.spend import By, spend
from fleet.telemetry.rollups.columns import HOUR as HOURS
from fleet.telemetry.rollups.fleet import recount
from tests.fleet.costs.spend.ledger_rows import HOUR, at, charged, rolled

NOON = at("2026-05-10 12:00")


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=1)


def changed(machine, moment) -> None:
    LedgerChange.objects.create(account=machine.account, instance=machine, from_at=moment)


def total(team):
    return spend(team=team, start=date(2025, 1, 1), end=date(2027, 1, 1)).all.total


class TestChanges:
    def test_what_changed_is_summed_again_from_there_on(self, acme, machine):
        one = charged(machine, "compute", at("2026-02-01 00:00"), at("2026-05-05 00:00"), "1")
        sum_costs(now=NOON)
        assert total(acme) == (28 + 31 + 30 + 4) * 24
        LedgerInterval.objects.filter(pk=one.pk).update(
            period=DateTimeTZRange(at("2026-02-01 00:00"), at("2026-03-31 12:00"))
        )
        sum_costs(now=NOON)
        assert total(acme) == (28 + 31 + 30 + 4) * 24, "nobody said that it changed"
        changed(machine, at("2026-03-31 12:00"))
        sum_costs(now=NOON)
        assert total(acme) == (28 + 30) * 24 + 12
        assert not LedgerChange.objects.exists()
        assert not CostDay.objects.filter(day__gt=date(2026, 3, 31)).exists()
        assert not CostMonth.objects.filter(month__gt=date(2026, 3, 1)).exists()
        assert verify_sums(acme) == []

    def test_what_is_gone_leaves_no_rows(self, acme, machine):
        one = charged(machine, "compute", at("2026-05-01 00:00"), at("2026-05-05 00:00"), "1")
        sum_costs(now=NOON)
        one.delete()
        changed(machine, at("2026-05-01 00:00"))
        sum_costs(now=NOON)
        assert (CostDay.objects.count(), CostGroupDay.objects.count(), CostMonth.objects.count()) == (0, 0, 0)

    def test_summing_twice_writes_nothing_twice(self, acme, machine):
        charged(machine, "compute", at("2026-05-01 00:00"), at("2026-05-05 00:00"), "1")
        sum_costs(now=NOON)
        before = set(CostDay.objects.values_list("pk", "amount"))
        changed(machine, at("2026-05-01 00:00"))
        sum_costs(now=NOON)
        assert set(CostDay.objects.values_list("pk", "amount")) == before

    def test_others_rows_stay_as_they_are(self, acme, machine, make_instance, account):
        other = make_instance(name="train-02", gpus=1)
        charged(other, "compute", at("2026-05-01 00:00"), at("2026-05-05 00:00"), "1")
        charged(account, "network_volume", at("2026-05-01 00:00"), at("2026-05-05 00:00"), "0.5")
        one = charged(machine, "compute", at("2026-05-01 00:00"), at("2026-05-05 00:00"), "1")
        sum_costs(now=NOON)
        assert total(acme) == 2.5 * 96
        one.delete()
        changed(machine, at("2026-05-01 00:00"))
        sum_costs(now=NOON)
        assert total(acme) == 1.5 * 96
        assert verify_sums(acme) == []


class TestLateHours:
    def test_hours_that_late_samples_changed_are_summed_again(self, acme, machine):
        gpu = machine.gpus.get()
        charged(machine, "compute", at("2026-03-01 00:00"), at("2026-03-02 00:00"), "1")
        sum_costs(now=NOON)
        rolled(gpu, at("2026-03-01 10:00"), working=3600)
        recount(HOURS, [at("2026-03-01 10:00")], [machine.pk])
        assert LedgerChange.objects.get().from_at == at("2026-03-01 10:00")
        sum_costs(now=NOON)
        row = CostDay.objects.get()
        assert row.working_amount == 1
        assert row.unknown_amount == 23


class TestRuns:
    def test_what_goes_on_grows_with_every_run(self, acme, machine):
        charged(machine, "compute", at("2026-05-10 11:00"), None, "1")
        sum_costs(now=NOON)
        assert total(acme) == 1
        sum_costs(now=NOON + timedelta(minutes=6))
        assert str(total(acme))[:4] == "1.10"
        # Nobody summed for two days: days that ended meanwhile are whole.
        sum_costs(now=NOON + timedelta(days=2))
        assert total(acme) == 49
        assert CostDay.objects.get(day=date(2026, 5, 11)).amount == 24
        assert CostProgress.objects.get().summed_until == NOON + timedelta(days=2)

    def test_a_run_that_has_no_time_left_goes_on_in_the_next(self, acme, machine, make_instance):
        charged(machine, "compute", at("2025-12-15 00:00"), NOON, "1")
        assert not sum_costs(now=NOON, budget_seconds=0).is_complete
        first = total(acme)
        assert first == 17 * 24
        # The day of now does not wait for months that are summed again.
        fresh = make_instance(name="train-02")
        charged(fresh, "compute", at("2026-05-10 00:00"), None, "1")
        changed(fresh, at("2026-05-10 00:00"))
        assert not sum_costs(now=NOON, budget_seconds=0).is_complete
        assert CostDay.objects.filter(day=date(2026, 5, 10)).count() == 1
        assert sum_costs(now=NOON).is_complete
        assert total(acme) == (NOON - at("2025-12-15 00:00")) / HOUR + 12
        assert verify_sums(acme) == []

    def test_teams_do_not_touch_each_other(self, acme, rival, machine, make_instance):
        charged(machine, "compute", at("2026-05-10 00:00"), None, "1")
        sum_costs(now=NOON)
        assert total(rival) == 0
        assert spend(team=rival, start=date(2026, 5, 1), end=date(2026, 6, 1), by=[By.MACHINE]).rows == {}


class TestSteps:
    TODAY = date(2026, 5, 10)

    def test_steps_end_with_their_month_or_with_today(self):
        queue = [Wanted(1, 3, date(2026, 5, 9))]
        step = next_step(queue, today=self.TODAY)
        assert step is not None
        assert ([one.instance_id for one in step.wanted], step.first, step.past_last) == (
            [3],
            date(2026, 5, 9),
            date(2026, 5, 11),
        )
        queue = [Wanted(1, 1, date(2026, 2, 10)), Wanted(1, 2, date(2026, 2, 20)), *queue]
        step = next_step(queue, today=self.TODAY)
        assert step is not None
        assert ([one.instance_id for one in step.wanted], step.past_last) == ([1, 2], date(2026, 3, 1))

    def test_a_step_takes_no_more_than_it_may(self):
        queue = [Wanted(1, number, date(2026, 2, 1)) for number in range(100)]
        step = next_step(queue, today=self.TODAY, most=280)
        assert step is not None
        assert len(step.wanted) == 10

    def test_nothing_is_asked_for(self):
        assert next_step([], today=self.TODAY) is None


class TestCheck:
    def test_rows_that_say_something_else_are_found(self, acme, machine):
        charged(machine, "compute", at("2026-05-09 00:00"), at("2026-05-10 00:00"), "1")
        sum_costs(now=NOON)
        assert verify_sums(acme) == []
        CostMonth.objects.update(free_amount="0.00000000000001")
        CostGroupDay.objects.all().delete()
        CostDay.objects.update(held_amount="1")
        found = {(one.table, one.what) for one in verify_sums(acme)}
        assert ("cost_day", "amount") in found
        assert ("cost_month", "held_amount, free_amount") in found
        assert {table for table, _what in found} == {"cost_day", "cost_month", "cost_group_day"}
