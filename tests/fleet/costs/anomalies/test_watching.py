"""What is unusual becomes an alert with its numbers, stays one, and is cleared by evidence, or by the rule's being switched off."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.alerts.models import Alert
from fleet.alerts.words import title_of, why_of
from fleet.costs.anomalies.models import AnomalyRule
from fleet.costs.anomalies.tasks import watch_all_money
from fleet.costs.anomalies.watch import watch_money
from fleet.costs.book.models import LedgerInterval
from fleet.costs.spend.models import CostProgress
from fleet.states import GpuState
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on

STEADY_DAYS = range(5, 16)


@pytest.fixture
def train(make_instance, charge, acme, summed):
    """$10 an hour for eleven days, and now."""
    machine = make_instance(name="train-01", first_seen_at=november(1), price_per_hour=Decimal(10))
    charge(machine, "10")
    for day in STEADY_DAYS:
        spend_on(acme, on(day), 240, instance=machine)
    return machine


def open_alerts() -> dict[str, str]:
    return {alert.cause: alert.subject for alert in Alert.objects.filter(closed_at=None)}


def test_a_steady_fleet_is_quiet(acme, train):
    watch_money(team=acme, now=NOW)
    assert not Alert.objects.exists()


def test_a_faster_burn_is_an_alert_until_it_is_over(acme, train, make_instance, charge):
    burst = charge(make_instance(name="burst", price_per_hour=Decimal(8), first_seen_at=november(14)), "8")
    assert watch_money(team=acme, now=NOW).opened == 1
    alert = Alert.objects.get()
    assert (alert.cause, alert.subject, alert.severity) == ("costs.burn_rate", "team", "warning")
    assert title_of(alert) == "Money is spent faster than usual"
    assert "$18.00 an hour, 1.8 times the $10.00 of the last seven days; $192 more a day" in why_of(alert)
    assert alert.price_per_hour == 8
    assert watch_money(team=acme, now=NOW + timedelta(minutes=10)).opened == 0
    LedgerInterval.objects.filter(pk=burst.pk).update(period=(november(1), NOW))
    assert watch_money(team=acme, now=NOW + timedelta(minutes=20)).cleared == 1
    alert.refresh_from_db()
    assert (alert.is_open, alert.closed_why) == (False, "evidence")


def test_without_evidence_what_is_open_stays_open(acme, train, make_instance, charge):
    charge(make_instance(name="burst", first_seen_at=november(14)), "8")
    watch_money(team=acme, now=NOW)
    CostProgress.objects.all().delete()
    assert watch_money(team=acme, now=NOW + timedelta(minutes=10)).cleared == 0
    assert open_alerts() == {"costs.burn_rate": "team"}


def test_a_rule_that_is_switched_off_closes_its_alert(acme, train, make_instance, charge):
    charge(make_instance(name="burst", first_seen_at=november(14)), "8")
    watch_money(team=acme, now=NOW)
    AnomalyRule.objects.create(team=acme, kind="costs_burn_rate", enabled=False)
    watch_money(team=acme, now=NOW + timedelta(minutes=10))
    assert Alert.objects.get().closed_why == "rule_off"


def test_a_team_has_its_own_thresholds(acme, train, make_instance, charge):
    charge(make_instance(name="burst", first_seen_at=november(14)), "8")
    AnomalyRule.objects.create(team=acme, kind="costs_burn_rate", thresholds={"factor": 2})
    assert watch_money(team=acme, now=NOW).opened == 0


def test_an_expensive_new_machine_is_told_for_a_day(acme, train, make_instance):
    big = make_instance(name="h200-01", first_seen_at=NOW - timedelta(hours=1), price_per_hour=Decimal(30))
    watch_money(team=acme, now=NOW)
    alert = Alert.objects.get()
    assert (alert.cause, alert.subject, alert.instance) == ("costs.new_machine", f"instance:{big.pk}", big)
    assert title_of(alert) == "h200-01 is new and expensive"
    assert "first seen within a day, $30.00 an hour" in why_of(alert)
    watch_money(team=acme, now=NOW + timedelta(hours=23, minutes=30))
    assert not Alert.objects.get().is_open


def test_disks_of_stopped_machines_are_one_alert(acme, train, make_instance, charge):
    charge(make_instance(name="off-1"), "0.2", kind="disk_stopped")
    charge(make_instance(name="off-2"), "0.1", kind="disk_stopped", unit="gb_month", quantity=500)
    watch_money(team=acme, now=NOW)
    alert = Alert.objects.get(cause="costs.stopped_storage")
    assert "$196 a month for the disks of 2 stopped machines: off-1 $146.00, off-2 $50.00" in why_of(alert)


def test_idle_money_of_yesterday_is_held_against_the_week(acme, train):
    spend_on(acme, on(15), 160, instance=train, state=GpuState.FREE)
    watch_money(team=acme, now=NOW)
    alert = Alert.objects.get(cause="costs.idle_share")
    assert "40% of the money of Sun 15 Nov was idle ($160), usually 0%; $160 more" in why_of(alert)


def test_a_dear_day_is_held_against_its_weekday(acme, train):
    for back in (7, 14, 21):
        spend_on(acme, on(15) - timedelta(days=back), 100 if back > 10 else 0, instance=train)
    spend_on(acme, on(15), 300, instance=train)
    watch_money(team=acme, now=NOW)
    alert = Alert.objects.get(cause="costs.weekday")
    assert "Sun 15 Nov cost $540; the same weekday of 3 weeks before it: $100" in why_of(alert)


def test_money_of_another_team_is_held_against_its_own_days(acme, train, rival, make_instance, charge):
    charge(make_instance(name="burst", first_seen_at=november(14)), "8")
    CostProgress.objects.create(team=rival, summed_until=NOW, time_zone="UTC")
    assert watch_money(team=rival, now=NOW).opened == 0


def test_the_task_looks_at_every_team(acme, rival, train, make_instance, charge, time_machine):
    time_machine.move_to(NOW, tick=False)
    charge(make_instance(name="burst", first_seen_at=november(14)), "8")
    assert watch_all_money() == 1
