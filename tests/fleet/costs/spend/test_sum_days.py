"""From intervals to days of money: prices and units, days of any zone, what the GPUs did, whose it was."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from fleet.costs.attribution.models import ShareHour, ShareProgress, SplitMode
from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.models import Adjustment, CostDay
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import By, spend
from fleet.states import GpuState
from fleet.teams.models import Team
from fleet.telemetry.rollups.models import RollupProgress
from tests.fleet.costs.spend.ledger_rows import HOUR, at, belongs, charged, rolled

NOON = at("2026-05-10 12:00")


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=2, gpu_model="H100", market="spot", tenancy="exclusive", region="eu")


@pytest.fixture(autouse=True)
def agree(acme):
    """Whatever a test does, the three tables end up saying the same."""
    yield
    assert verify_sums(acme) == []


def in_zone(team: Team, name: str) -> None:
    team.time_zone = name
    team.save()


def amounts(team: Team) -> dict[tuple[str, date], Decimal]:
    rows = CostDay.objects.filter(team=team).values_list("meter", "day", "amount")
    found: dict[tuple[str, date], Decimal] = {}
    for meter, day, amount in rows:
        found[meter, day] = found.get((meter, day), Decimal(0)) + amount
    return found


class TestPrices:
    def test_hours_count_by_the_second_and_open_ones_up_to_now(self, acme, machine):
        charged(machine, "compute", at("2026-05-08 22:30"), at("2026-05-09 01:00"), "2.40")
        charged(machine, "compute", at("2026-05-10 11:00"), None, "2.40")
        sum_costs(now=NOON + timedelta(seconds=15))
        assert amounts(acme) == {
            ("compute", date(2026, 5, 8)): Decimal("3.60"),
            ("compute", date(2026, 5, 9)): Decimal("2.40"),
            ("compute", date(2026, 5, 10)): Decimal("2.41"),
        }

    def test_gigabytes_count_by_the_seconds_of_their_month(self, acme, machine):
        charged(machine, "disk_stopped", at("2026-02-28"), at("2026-03-02"), "0.10", unit="gb_month", quantity="280")
        sum_costs(now=NOON)
        found = amounts(acme)
        assert found["disk_stopped", date(2026, 2, 28)] == 1
        assert round(found["disk_stopped", date(2026, 3, 1)], 12) == round(Decimal(28) / 31, 12)

    def test_months_and_what_is_charged_once(self, acme, account, machine):
        charged(account, "commitment", at("2026-04-01"), at("2026-05-01"), "300", unit="month")
        charged(machine, "licence", at("2026-05-01"), at("2026-05-05"), "40", unit="once")
        charged(machine, "egress", at("2026-05-03 12:00"), None, "7", unit="once")
        sum_costs(now=NOON)
        found = amounts(acme)
        assert found["commitment", date(2026, 4, 30)] == 10
        assert [found["licence", date(2026, 5, 1 + number)] for number in range(4)] == [10, 10, 10, 10]
        assert [amount for (meter, _day), amount in found.items() if meter == "egress"] == [7, *[0] * 7]

    def test_a_price_that_nobody_told_is_no_zero(self, acme, machine):
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 12:00"), None)
        charged(machine, "unknown", at("2026-05-09 12:00"), at("2026-05-09 13:00"), None, unit="")
        charged(machine, "nothing", at("2026-05-09 13:00"), at("2026-05-09 14:00"), None, unit="")
        sum_costs(now=NOON)
        assert {one.meter: (float(one.amount), one.seconds, one.unpriced_seconds) for one in CostDay.objects.all()} == {
            "compute": (0, 7200, 7200),
            "unknown": (0, 3600, 0),
        }

    def test_currencies_stay_apart(self, acme, machine):
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 12:00"), "1")
        charged(machine, "compute", at("2026-05-09 12:00"), at("2026-05-09 13:00"), "7", currency="CNY")
        sum_costs(now=NOON)
        assert spend(team=acme, start=date(2026, 5, 1), end=date(2026, 6, 1)).all.amounts == {"USD": 2, "CNY": 7}

    def test_adjustments_count_on_their_day(self, acme, account, machine):
        fields = {"team": acme, "account": account, "currency": "USD", "kind": "refund", "reason": "an outage"}
        Adjustment.objects.create(instance=machine, at=at("2026-05-09 23:59"), amount="-1.25", **fields)
        Adjustment.objects.create(at=at("2026-05-10 00:00"), amount="3", **fields)
        Adjustment.objects.create(at=at("2026-05-10 12:00"), amount="9", **fields)
        sum_costs(now=NOON)
        rows = CostDay.objects.values_list("day", "instance", "meter", "amount", "unknown_amount").order_by("day")
        assert list(rows) == [
            (date(2026, 5, 9), machine.pk, "adjustment", Decimal("-1.25"), Decimal("-1.25")),
            (date(2026, 5, 10), None, "adjustment", 3, 3),
        ]
        sum_costs(now=NOON + HOUR)
        assert CostDay.objects.get(day=date(2026, 5, 10)).amount == 12


class TestDays:
    @pytest.mark.parametrize(
        ("zone", "first", "hours"),
        [
            ("Europe/Berlin", date(2026, 3, 28), [24, 23, 24]),
            ("Europe/Berlin", date(2025, 10, 25), [24, 25, 24]),
            ("America/New_York", date(2025, 11, 1), [24, 25, 24]),
            ("Asia/Kolkata", date(2026, 3, 28), [24, 24, 24]),
            ("Asia/Kathmandu", date(2026, 3, 28), [24, 24, 24]),
            ("Australia/Lord_Howe", date(2026, 4, 4), [24, 24.5, 24]),
            ("Pacific/Kiritimati", date(2026, 3, 28), [24, 24, 24]),
            ("Africa/Cairo", date(2026, 4, 23), [24, 23, 24]),
        ],
    )
    def test_days_are_as_long_as_they_are_there(self, acme, machine, zone, first, hours):
        in_zone(acme, zone)
        charged(machine, "compute", at("2025-10-01"), None, "1")
        sum_costs(now=at("2026-05-02"))
        found = amounts(acme)
        assert [found["compute", first + timedelta(days=number)] for number in range(3)] == hours

    def test_another_zone_means_all_days_again(self, acme, machine):
        charged(machine, "compute", at("2026-05-08 20:00"), at("2026-05-09 02:00"), "1")
        sum_costs(now=NOON)
        assert amounts(acme) == {("compute", date(2026, 5, 8)): 4, ("compute", date(2026, 5, 9)): 2}
        in_zone(acme, "America/Los_Angeles")
        sum_costs(now=NOON)
        assert amounts(acme) == {("compute", date(2026, 5, 8)): 6}
        in_zone(acme, "Asia/Shanghai")
        sum_costs(now=NOON)
        assert amounts(acme) == {("compute", date(2026, 5, 9)): 6}


class TestStates:
    def states(self, meter: str) -> dict[str, Decimal]:
        row = CostDay.objects.get(meter=meter)
        found = {state.value: getattr(row, f"{state.value}_amount") for state in GpuState}
        assert sum(found.values()) == row.amount
        return {state: round(amount, 6) for state, amount in found.items() if amount}

    def test_an_hour_is_divided_as_its_gpus_were(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 12:00"), "8")
        rolled(one, at("2026-05-09 10:00"), working=3600)
        rolled(two, at("2026-05-09 10:00"), held=1800, free=900, stalled=900)
        sum_costs(now=NOON)
        assert self.states("compute") == {"working": 4, "held": 2, "free": 1, "stalled": 1, "unknown": 8}
        row = CostDay.objects.get()
        assert (row.working_gpu_seconds, row.held_gpu_seconds, row.unknown_gpu_seconds) == (3600, 1800, 7200)
        assert row.seconds == 7200

    def test_thirds_add_up(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 11:00"), "1")
        rolled(one, at("2026-05-09 10:00"), working=1200, held=1200, free=1200)
        rolled(two, at("2026-05-09 10:00"), working=1200, held=1200, free=1200)
        sum_costs(now=NOON)
        assert set(self.states("compute")) == {"working", "held", "free"}

    def test_what_is_paid_while_a_machine_is_off_is_stopped(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 11:00"), "8")
        charged(machine, "disk_running", at("2026-05-09 10:00"), at("2026-05-09 10:15"), "4")
        charged(machine, "disk_stopped", at("2026-05-09 10:15"), at("2026-05-09 11:00"), "4")
        for gpu in (one, two):
            rolled(gpu, at("2026-05-09 10:00"), working=900, stopped=2700)
        sum_costs(now=NOON)
        assert self.states("compute") == {"working": 2, "stopped": 6}
        assert self.states("disk_running") == {"working": 1}
        assert self.states("disk_stopped") == {"stopped": 3}

    def test_a_price_that_changes_within_an_hour_changes_no_state(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 10:30"), "8")
        charged(machine, "compute", at("2026-05-09 10:30"), at("2026-05-09 11:00"), "4")
        for gpu in (one, two):
            rolled(gpu, at("2026-05-09 10:00"), working=1800, unknown=900, stopped=900)
        sum_costs(now=NOON)
        assert self.states("compute") == {"working": 3, "unknown": Decimal("1.5"), "stopped": Decimal("1.5")}

    def test_time_before_a_machine_was_rented_is_not_what_nobody_knows_of_it(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-09 10:30"), at("2026-05-09 11:00"), "8")
        for gpu in (one, two):
            rolled(gpu, at("2026-05-09 10:00"), working=1350, unknown=2250)
        sum_costs(now=NOON)
        assert self.states("compute") == {"working": 3, "unknown": 1}

    def test_cards_that_are_cut_count_by_their_instances(self, acme, machine):
        card, whole = machine.gpus.order_by("index")
        parts = [
            machine.gpus.create(uuid=f"MIG-{number}", index=9, mig_parent_uuid=card.uuid, mig_profile="3g.40gb")
            for number in range(2)
        ]
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 11:00"), "9")
        rolled(card, at("2026-05-09 10:00"), unknown=3600)
        rolled(whole, at("2026-05-09 10:00"), working=3600)
        rolled(parts[0], at("2026-05-09 10:00"), free=3600)
        rolled(parts[1], at("2026-05-09 10:00"), held=3600)
        sum_costs(now=NOON)
        assert self.states("compute") == {"working": 3, "held": 3, "free": 3}
        row = CostDay.objects.get()
        gpu_seconds = row.working_gpu_seconds + row.held_gpu_seconds + row.free_gpu_seconds
        assert round(gpu_seconds, 3) == 2 * 3600

    def test_an_hour_that_is_rolled_up_later_is_counted_then(self, acme, machine):
        one, two = machine.gpus.order_by("index")
        charged(machine, "compute", at("2026-05-10 10:00"), at("2026-05-10 11:00"), "8")
        sum_costs(now=NOON)
        assert self.states("compute") == {"unknown": 8}
        for gpu in (one, two):
            rolled(gpu, at("2026-05-10 10:00"), working=3600)
        RollupProgress.objects.create(resolution="1h", rolled_until=at("2026-05-10 11:00"))
        sum_costs(now=NOON + HOUR)
        assert self.states("compute") == {"working": 8}


class TestWhose:
    def test_hours_belong_to_whom_their_spans_name(self, acme, machine, project, alice):
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 14:00"), "1")
        belongs(machine, at("2026-05-09 11:00"), at("2026-05-09 13:00"), project=project, owner=alice, job="llm")
        belongs(machine, at("2026-05-09 13:00"), None, labels={"stage": "serve"})
        sum_costs(now=NOON)
        found = spend(
            team=acme,
            start=date(2026, 5, 9),
            end=date(2026, 5, 10),
            by=[By.PROJECT, By.OWNER, By.JOB, By.LABEL],
            label="stage",
        )
        assert {key: one.total for key, one in found.rows.items()} == {
            (project.pk, alice.pk, "llm", None): 2,
            (None, None, "", None): 1,
            (None, None, "", "serve"): 1,
        }

    def test_an_hour_belongs_to_the_span_that_holds_when_it_begins(self, acme, machine, project):
        in_zone(acme, "Asia/Kolkata")
        charged(machine, "compute", at("2026-05-09 18:10"), at("2026-05-09 19:10"), "6")
        belongs(machine, at("2026-05-09 19:00"), None, project=project)
        sum_costs(now=NOON)
        rows = CostDay.objects.values_list("day", "group__project", "amount")
        assert {(day, owner): float(amount) for day, owner, amount in rows} == {
            (date(2026, 5, 9), None): 2,
            (date(2026, 5, 10), project.pk): 1,
            (date(2026, 5, 10), None): 3,
        }

    def test_shares_and_the_rest_that_nobody_used(self, acme, machine, project, alice, bob):
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 13:00"), "1")
        belongs(machine, at("2026-05-09 10:00"), None, split=SplitMode.HOLDS, project=project)
        ShareProgress.objects.create(instance=machine, until=at("2026-05-09 12:00"))
        third = Decimal("0.33333333")
        ShareHour.objects.create(instance=machine, hour=at("2026-05-09 10:00"), owner=alice, share=third)
        ShareHour.objects.create(instance=machine, hour=at("2026-05-09 10:00"), owner=bob, share=third)
        sum_costs(now=NOON)
        rows = CostDay.objects.values_list("group__owner", "group__project", "group__idle_share", "amount")
        assert set(rows) == {
            (alice.pk, project.pk, False, third),
            (bob.pk, project.pk, False, third),
            # Of the hour at ten what is left, of the one at eleven all: nobody had it.
            (None, project.pk, True, 2 - 2 * third),
            # Nobody knows yet.
            (None, project.pk, False, 1),
        }
        assert sum(row[3] for row in rows) == 3

    def test_the_machine_and_its_market_are_told(self, acme, machine):
        charged(machine, "compute", at("2026-05-09 10:00"), at("2026-05-09 11:00"), market="spot")
        charged(machine, "compute", at("2026-05-09 11:00"), at("2026-05-09 12:00"), market="on_demand")
        sum_costs(now=NOON)
        rows = CostDay.objects.values_list("group__gpu_model", "group__market", "group__tenancy", "group__region")
        assert set(rows) == {("H100", "spot", "exclusive", "eu"), ("H100", "on_demand", "exclusive", "eu")}
