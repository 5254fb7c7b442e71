"""A dry run of two days counted by hand: right stops, a wrong one, one that nobody can judge, and money to the cent."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.costs.book.models import LedgerInterval
from fleet.costs.spend.models import ExchangeRate
from fleet.idle.dryrun.dry_run import dry_run
from fleet.idle.policies.models import IdleAction, MachineUse
from fleet.inventory.models import Hold, Instance
from tests.fleet.costs.spend.ledger_rows import charged
from tests.fleet.idle.dryrun.recording import hours, record

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
# 1 h of work, 6 h of rest, work, 100 min of rest, work, 95 min of rest and then silence, work; rest until the end.
SIGNS = "w" * 12 + hours(6) + "w" + "." * 20 + "w" + "." * 19 + "?" * 8 + "w" * 6 + hours(3)


@pytest.fixture
def end(rented, policy):
    return record(rented(), SIGNS, MONDAY)


def run(policy, end, **given):
    return dry_run(policy=policy, days=2, now=end, **given)


def told(found):
    return [
        ((one.stop.at - MONDAY) // MINUTE, (one.stop.until - MONDAY) // MINUTE, one.stop.judged) for one in found.stops
    ]


def test_what_it_would_have_stopped_and_when(policy, end):
    assert told(run(policy, end)) == [
        (60 + 90, 7 * 60, "right"),
        (425 + 90, 525, "wrong"),
        (530 + 90, 625, "unclear"),
        # Rest goes on after half an hour of work.
        (695 + 90, 875, "goes_on"),
    ]


def test_gpu_hours_and_money_to_the_cent(policy, end):
    """An hour costs 6.00 and 0.04 while it is stopped; a wrong stop 20 min of both GPUs, which is 2.00."""
    found = run(policy, end)
    assert [round(one.stop.gpu_hours, 4) for one in found.stops] == [9.0, 0.3333, 0.1667, 3.0]
    saved = [one.money.saved and round(one.money.saved, 2) for one in found.stops]
    assert saved == [Decimal("26.82"), Decimal("0.99"), Decimal("0.50"), Decimal("8.94")]
    totals = found.totals
    assert (totals.stops, totals.wrong, totals.unclear, totals.machines) == (4, 1, 1, 1)
    assert (round(totals.saved, 2), round(totals.harm, 2)) == (Decimal("37.25"), Decimal("2.00"))
    assert round(totals.net, 2) == Decimal("35.25")


def test_a_shorter_window_stops_more(policy, end):
    found = run(policy, end, window=5 * MINUTE)
    assert [one[0] for one in told(found)] == [95, 460, 565, 730]
    assert run(policy, end, window=10 * HOUR).stops == []


def test_a_wrong_stop_of_a_job_says_which(policy, end, bob):
    machine = Instance.objects.get()
    back = MONDAY + 526 * MINUTE
    Hold.objects.create(
        instance=machine, kind="job", owner=bob, reason="vid-ft-88", started_at=back, ended_at=back + 2 * MINUTE
    )
    assert [one.stop.run for one in run(policy, end).stops] == ["", "vid-ft-88", "", ""]


def test_the_teams_own_figure_of_a_wrong_stop(policy, end):
    policy.wrong_stop_gpu_hours = 8.0
    # Eight GPU-hours at 3.00 each.
    assert run(policy, end).totals.harm == Decimal("24.00")


def test_a_price_that_changed_counts_from_then_on(policy, end):
    LedgerInterval.objects.all().delete()
    machine = run(policy, end).ground.machines.popitem()[1]
    charged(machine, "compute", MONDAY - DAY, MONDAY + 4 * HOUR, "6.00")
    charged(machine, "compute", MONDAY + 4 * HOUR, None, "3.00")
    # 1.5 h at 5.96 and 3 h at 2.96.
    assert run(policy, end).stops[0].money.saved == Decimal("17.82")


def test_what_nobody_knows_the_price_of_is_counted_and_adds_nothing(policy, end):
    LedgerInterval.objects.update(unit_price=None)
    totals = run(policy, end).totals
    assert (totals.unpriced, totals.saved, totals.stops) == (4, 0, 4)


def test_a_machine_that_costs_as_much_while_stopped_saves_nothing(policy, end, account):
    account.kind = "azure"
    account.save()
    machine = run(policy, end).ground.machines.popitem()[1]
    machine.storage_price_per_hour = Decimal("7.00")
    machine.save()
    assert run(policy, end).stops[0].money.saved == 0


def test_money_comes_in_the_teams_currency_at_the_days_rate(policy, rented, acme):
    machine = rented("ad-a800-23", currency="CNY", price="20.00", storage_price_per_hour=Decimal(0))
    end = record(machine, SIGNS, MONDAY)
    assert run(policy, end).totals.unpriced == 4
    ExchangeRate.objects.create(
        team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate=Decimal("0.14"), source="typed"
    )
    found = run(policy, end)
    # 4.5 h at 20.00 CNY.
    assert found.stops[0].money.saved == Decimal("12.60")
    assert found.totals.unpriced == 0


def test_office_hours_ask_and_are_not_counted(office, end):
    """Idle from 02:00 in Berlin: stopped before 09:00 like any. Later rests begin in office hours: told, and used before 19:00."""
    found = run(office, end)
    assert [one[:1] for one in told(found)] == [(150,)]
    assert len(found.asked) == 3


def test_a_machine_that_somebody_pinned_is_not_stopped(policy, end):
    found = run(policy, end)
    MachineUse.objects.create(instance=found.ground.machines.popitem()[1], mode="pinned")
    assert run(policy, end).stops == []


def test_one_whose_data_would_be_lost_is_spared_unless_that_is_accepted(policy, end, account):
    account.kind = "runpod"
    account.save()
    policy.accept_loss = False
    found = run(policy, end)
    assert found.stops == []
    assert [machine.name for machine in found.ground.spared] == ["rp-h100-01"]
    policy.accept_loss = True
    assert len(run(policy, end).stops) == 4


def test_a_policy_that_only_tells_is_tried_as_one_that_stops(policy, end):
    policy.action, policy.accept_loss = IdleAction.ALERT, False
    assert len(run(policy, end).stops) == 4


def test_a_policy_that_covers_nothing(policy, end):
    policy.provider = "aws"
    found = run(policy, end)
    assert (found.stops, found.asked, found.ground.machines) == ([], [], {})
    assert found.totals.net == 0
    assert found.ground.idle_gpu_hours == 0


def test_machines_of_others_are_none_of_its(policy, end, rival):
    policy.team = rival
    assert run(policy, end).ground.machines == {}


def test_as_many_questions_for_many_machines_as_for_one(policy, end, rented, django_assert_max_num_queries):
    with django_assert_max_num_queries(17) as one:
        run(policy, end)
    for number in range(3):
        record(rented(f"more-{number}"), SIGNS, MONDAY)
    with django_assert_max_num_queries(len(one)):
        assert len(run(policy, end).stops) == 16
