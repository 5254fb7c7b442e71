"""What is planned is done when it is due: told, still meant, not held, once, and proved."""

from __future__ import annotations

import pytest

from fleet.alerts.models import Alert
from fleet.idle.planned.steps import retry_after
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.closing import abandon_operation
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_terminate
from fleet.inventory.plans import standing
from fleet.inventory.plans.models import PlannedAction
from fleet.teams.models import AuditEntry
from tests.fleet.idle.planned.conftest import HOUR

pytestmark = pytest.mark.django_db


def words() -> set[str]:
    return set(AuditEntry.objects.filter(action__startswith="planned_action.").values_list("action", flat=True))


def test_it_is_stopped_and_done_once_the_provider_shows_it(plan, carry, world, fresh):
    action = plan()
    carry()
    taken = fresh(action)
    assert (taken.state, taken.operation.idempotency_key) == ("taken", f"planned:{action.pk}")
    assert world.calls == []
    carry(minutes=5)
    done = fresh(action)
    assert (done.state, done.ended_at, world.calls) == ("done", done.operation.proved_at, [("stop", "m-1")])
    assert {"planned_action.take", "planned_action.done"} <= words()


def test_nothing_is_done_before_it_is_due(plan, carry, fresh):
    action = plan(hours=2)
    carry()
    assert fresh(action).state == "planned"
    carry(minutes=121)
    assert fresh(action).state == "taken"


def test_nothing_is_stopped_whose_owner_was_not_told(plan, carry, fresh):
    action = plan(told=False)
    carry()
    assert (fresh(action).state, Operation.objects.count()) == ("planned", 0)


def test_a_start_needs_no_notice(plan, carry, off, fresh, world):
    off()
    action = plan("start", told=False)
    carry()
    carry(minutes=5)
    assert (fresh(action).state, world.calls) == ("done", [("start", "m-1")])


def test_it_is_done_late_after_a_downtime(plan, carry, clock, world, fresh):
    action = plan(hours=1)
    clock.shift(4 * HOUR)
    world.now += 4 * HOUR
    carry()
    assert fresh(action).state == "taken"


class TestNothingIsLeft:
    def test_the_machine_is_off_already(self, plan, carry, off, fresh):
        action = plan()
        off()
        carry()
        assert (fresh(action).state, fresh(action).ended_reason) == ("cancelled", "gone")

    def test_one_that_is_off_and_billed_in_full_is_not_off(self, plan, carry, machine, fresh):
        type(machine).objects.update(state="stopped", billing="full")
        action = plan()
        carry()
        assert fresh(action).state == "taken"

    def test_it_runs_already(self, plan, carry, fresh):
        action = plan("start")
        carry()
        assert fresh(action).ended_reason == "runs"

    def test_a_start_whose_next_stop_has_come(self, plan, carry, off, fresh, driver):
        off()
        action = plan("start", until=(driver.now + HOUR).isoformat())
        carry(minutes=90)
        assert fresh(action).ended_reason == "late"
        assert not Operation.objects.exists()

    def test_whoever_planned_it_means_it_no_more(self, plan, carry, fresh, monkeypatch):
        monkeypatch.setitem(standing._asked, "test", lambda action, _now: not action.values)
        meant, dropped = plan(), plan(source="test:2", over=True)
        carry()
        assert fresh(dropped).ended_reason == "lifted"
        assert fresh(meant).state == "taken"


class TestHeld:
    def test_it_waits_until_the_hold_ends_and_says_so(self, plan, carry, hold, fresh):
        action = plan()
        hold(hours=2)
        carry()
        carry(minutes=60)
        assert (fresh(action).state, fresh(action).waits_for, Operation.objects.count()) == ("planned", "held", 0)
        assert AuditEntry.objects.get(action="planned_action.wait").new["reason"] == "held"
        carry(minutes=61)
        assert (fresh(action).state, fresh(action).waits_for) == ("taken", "")

    def test_it_is_looked_at_again_soon_after_the_hold_was_released(self, plan, carry, hold, fresh, driver):
        action, kept = plan(), hold()
        carry()
        kept.ended_at = driver.now
        kept.save()
        carry()
        assert fresh(action).state == "planned"
        carry(minutes=2)
        assert fresh(action).state == "taken"

    def test_a_hold_that_came_before_the_call_counts(self, plan, carry, hold, fresh, world):
        action = plan()
        carry()
        kept = hold(hours=1)
        carry(minutes=1)
        assert (fresh(action).state, fresh(action).waits_for, world.calls) == ("planned", "held", [])
        assert not Alert.objects.filter(cause="planned.failed").exists()
        kept.delete()
        carry(minutes=2)
        carry(minutes=5)
        assert (fresh(action).state, len(world.calls)) == ("done", 1)
        keys = sorted(Operation.objects.values_list("idempotency_key", flat=True))
        assert keys == [f"planned:{action.pk}", f"planned:{action.pk}:1"]

    def test_no_hold_keeps_from_a_start(self, plan, carry, off, hold, fresh):
        off()
        action = plan("start")
        hold()
        carry()
        assert fresh(action).state == "taken"


class TestData:
    @pytest.mark.parametrize("accepted", [False, True, "yes"])
    def test_it_is_lost_only_where_that_was_agreed(self, plan, carry, fresh, accepted):
        action = plan("terminate", accept_loss=accepted)
        carry()
        state, error = ("taken", "") if accepted is True else ("failed", "loses_data")
        assert (fresh(action).state, fresh(action).error_kind) == (state, error)


class TestFailed:
    def test_it_is_told_with_the_money_and_tried_again_until_it_is_done(self, plan, carry, fresh, world, rented):
        ProviderAccount.objects.update(monitor_only=True)
        action = plan()
        carry()
        assert (fresh(action).state, fresh(action).error_kind, fresh(action).attempts) == ("failed", "monitor_only", 1)
        alert = Alert.objects.get(cause="planned.failed")
        assert (alert.severity, alert.price_per_hour) == ("urgent", action.instance.price_per_hour)
        carry(minutes=4)
        assert fresh(action).attempts == 1
        carry(minutes=2)
        assert fresh(action).attempts == 2
        ProviderAccount.objects.update(monitor_only=False)
        carry(minutes=11)
        carry(minutes=5)
        assert (fresh(action).state, len(world.calls)) == ("done", 1)
        assert Alert.objects.get(cause="planned.failed").closed_at is not None

    def test_the_later_the_rarer_and_once_an_hour_at_least(self):
        assert [retry_after(tries).total_seconds() / 60 for tries in (1, 2, 3, 4, 5, 40)] == [5, 10, 20, 40, 60, 60]

    def test_a_stop_that_its_provider_refused_is_another_operation_at_the_next_try(self, plan, carry, fresh):
        action = plan()
        carry()
        Operation.objects.update(state="failed", failed_at=action.due_at, error_kind="invalid", error_detail="no")
        carry()
        assert (fresh(action).state, fresh(action).error_detail) == ("failed", "no")
        carry(minutes=11)
        assert (fresh(action).state, Operation.objects.count()) == ("taken", 2)

    def test_it_is_called_off_by_a_person(self, plan, carry, fresh, by_alice, driver):
        from fleet.alerts.planned_acts import call_off

        ProviderAccount.objects.update(monitor_only=True)
        action = plan()
        carry()
        assert call_off(actor=by_alice, actions=[action], why="needed", now=driver.now) == 1
        carry(minutes=60)
        assert (fresh(action).state, fresh(action).attempts) == ("cancelled", 1)
        assert not Alert.objects.filter(cause="planned.failed", closed_at=None).exists()


class TestOtherActs:
    def test_it_waits_while_something_else_is_under_way(self, plan, carry, machine, fresh):
        Operation.objects.create(team=machine.team, account=machine.account, instance=machine, kind="stop", token="t")
        action = plan()
        carry()
        assert (fresh(action).state, fresh(action).waits_for) == ("planned", "operation_open")

    def test_what_a_person_puts_in_its_place_is_not_undone(self, plan, carry, machine, fresh, by_alice, driver, world):
        action = plan()
        carry()
        request_terminate(actor=by_alice, instance=machine, accept_loss=True, now=driver.now)
        carry()
        assert (fresh(action).state, fresh(action).ended_reason) == ("cancelled", "superseded")
        carry(minutes=10)
        assert [word for word, _id in world.calls] == ["terminate"]

    def test_what_a_person_gave_up_is_not_tried_again(self, plan, carry, fresh, by_alice, driver, world):
        world.lies["ignored"] = 99
        action = plan()
        carry()
        carry(minutes=10)
        assert fresh(action).state == "taken"
        abandon_operation(actor=by_alice, operation=fresh(action).operation, reason="we saw it off", now=driver.now)
        carry()
        assert (fresh(action).state, fresh(action).ended_reason) == ("cancelled", "abandoned")


def test_one_that_cannot_be_carried_out_keeps_no_other_from_it(plan, carry, fresh, monkeypatch, caplog):
    monkeypatch.setitem(standing._asked, "broken", lambda _action, _now: 1 / 0)
    plan(source="broken:1")
    action = plan(hours=0.001)
    carry(minutes=1)
    assert fresh(action).state == "taken"
    assert "could not be carried out" in caplog.text
    assert PlannedAction.objects.filter(state="planned").count() == 1
