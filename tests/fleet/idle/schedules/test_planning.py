"""Schedules plan each turn a while before it comes, once; people's words after it are theirs; after a downtime only the last turn counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.alerts.channels.calendar import planned_actions
from fleet.alerts.models import Alert
from fleet.alerts.planned_acts import call_off
from fleet.idle.schedules.manage import ScheduleSaid, remove_schedule, save_schedule
from fleet.idle.schedules.models import ScheduleEdge
from fleet.idle.schedules.planning import plan_schedules
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_start
from fleet.inventory.plans.models import PlannedAction
from fleet.inventory.plans.reasons import reason_text
from fleet.teams.models import Project

pytestmark = pytest.mark.django_db
EVENING, MORNING = datetime(2026, 11, 30, 19, tzinfo=UTC), datetime(2026, 12, 1, 7, tzinfo=UTC)


@pytest.fixture
def until(driver, carry):
    """until(19, 30): the world goes on to that hour of UTC, with whoever carries out coming by every ten minutes."""

    def go(hour, minute=0, *, day=30, told=True, step=10):
        month = 11 if day == 30 else 12
        end = datetime(2026, month, day, hour, minute, tzinfo=UTC)
        while driver.now < end:
            driver.run(min(step * 60, (end - driver.now).total_seconds()))
            carry()
            if told:
                PlannedAction.objects.filter(notified_at=None).update(notified_at=driver.now)

    return go


def acts() -> list[tuple[str, str]]:
    return list(PlannedAction.objects.order_by("pk").values_list("verb", "state"))


def test_a_turn_is_planned_told_and_in_the_calendar_before_it_comes(schedule, until, acme, driver):
    schedule()
    until(18, 20)
    assert acts() == []
    until(18, 30, told=False)
    action = PlannedAction.objects.get()
    assert (action.verb, action.due_at, action.notice_seconds) == ("stop", EVENING, 1800)
    assert reason_text(action) == "the schedule “Nights” stops it at 20:00 (Europe/Berlin)"
    assert Alert.objects.get(cause="machine.planned_act", closed_at=None).instance == action.instance
    assert [one.values["act"] for one in planned_actions(acme, driver.now)] == ["stop"]


def test_the_machine_is_off_at_night_and_back_in_the_morning(schedule, until, world):
    schedule()
    until(20)
    assert acts() == [("stop", "done")]
    until(7, 30, day=1)
    assert acts() == [("stop", "done"), ("start", "done")]
    assert [word for word, _id in world.calls] == ["stop", "start"]


def test_nothing_before_it_was_made_counts(schedule, driver, until):
    driver.wait(8 * 3600)
    schedule()
    assert plan_schedules(now=driver.now) == 0
    assert acts() == []


def test_what_a_person_starts_after_a_stop_runs_until_the_next(schedule, until, machine, by_alice, driver, fresh):
    schedule()
    until(20)
    request_start(actor=by_alice, instance=machine, now=driver.now)
    until(6, day=1)
    assert (fresh(machine).state, acts()) == ("running", [("stop", "done")])
    until(20, day=1)
    assert acts() == [("stop", "done"), ("stop", "done")]


def test_what_a_person_calls_off_is_not_planned_again_for_that_turn(schedule, until, by_alice, driver):
    schedule()
    until(18, 40)
    call_off(actor=by_alice, actions=PlannedAction.objects.all(), why="a run", now=driver.now)
    until(22)
    assert acts() == [("stop", "cancelled")]
    assert ScheduleEdge.objects.filter(verb="stop").count() == 1


class TestDowntime:
    def test_a_missed_stop_is_told_then_done(self, schedule, driver, carry, fresh):
        schedule()
        driver.wait(10 * 3600)
        driver.poll()
        carry()
        action = PlannedAction.objects.get()
        assert (action.verb, action.state, action.due_at) == ("stop", "planned", EVENING)
        told_at = driver.now + timedelta(minutes=1)
        driver.wait(60)
        from fleet.inventory.plans.actions import note_told

        note_told(action=action, at=told_at, notice=action.notice)
        carry(minutes=20)
        assert fresh(action).state == "planned"
        carry(minutes=15)
        assert fresh(action).state == "taken"

    def test_of_two_days_only_the_last_turn(self, schedule, driver, carry, off):
        schedule()
        off()
        driver.wait(2 * 86400)
        driver.poll()
        carry()
        assert acts() == [("start", "planned")]
        carry()
        assert acts() == [("start", "taken")]

    def test_a_stop_that_was_planned_is_dropped_when_the_start_has_come(self, schedule, until, driver, carry):
        schedule()
        until(18, 40)
        driver.wait(13 * 3600)
        driver.poll()
        carry()
        action = PlannedAction.objects.get()
        assert (action.state, action.ended_reason) == ("cancelled", "lifted")
        assert not Operation.objects.exists()

    def test_what_was_started_at_the_provider_meanwhile_is_a_persons(self, schedule, driver, carry, world):
        schedule()
        driver.wait(8 * 3600)
        for truth in world.machines.values():
            truth.started_at = driver.now
        driver.wait(600)
        driver.poll()
        carry()
        assert acts() == []
        assert ScheduleEdge.objects.get().planned_action is None


class TestHeld:
    def test_a_stop_that_is_held_all_night_is_over_in_the_morning(self, schedule, until, hold):
        schedule()
        hold()
        until(20)
        assert acts() == [("stop", "planned")]
        until(9, day=1)
        assert acts() == [("stop", "cancelled")]

    def test_a_start_takes_the_place_of_a_stop_that_failed(self, schedule, until, world, rented):
        schedule()
        until(18, 40)
        type(rented).objects.update(enabled=False)
        until(20)
        assert acts() == [("stop", "failed")]
        type(rented).objects.update(enabled=True)
        until(21)
        assert acts() == [("stop", "done")]


class TestChanged:
    def test_what_was_planned_before_is_called_off_and_planned_anew(self, schedule, until, by_alice, acme, driver):
        nights = schedule()
        until(18, 40)
        said = ScheduleSaid.of(nights)
        later = {name: getattr(said, name) for name in ScheduleSaid.__slots__} | {"name": "Late"}
        save_schedule(actor=by_alice, team=acme, said=ScheduleSaid(**later), schedule=nights, now=driver.now)
        until(18, 50)
        assert acts() == [("stop", "cancelled"), ("stop", "planned")]
        remove_schedule(actor=by_alice, schedule=nights, now=driver.now)
        until(20)
        assert acts() == [("stop", "cancelled"), ("stop", "cancelled")]

    def test_it_is_of_the_machines_of_a_project_or_with_a_label(self, schedule, acme, machine, driver):
        vision = Project.objects.create(team=acme, name="Vision", slug="vision")
        by_project = schedule(name="Project", machines=frozenset(), project=vision)
        by_label = schedule(name="Label", machines=frozenset(), label_name="tier", label_value="dev")
        from fleet.idle.schedules.covering import machines_of

        assert (machines_of(by_project), machines_of(by_label)) == ([], [])
        type(machine).objects.update(project=vision, labels={"tier": "dev"})
        assert machines_of(by_project) == machines_of(by_label) == [machine]


def test_a_machine_that_may_not_be_stopped_is_left_alone(schedule, until, rented):
    schedule()
    type(rented).objects.update(monitor_only=True)
    until(20)
    assert acts() == []
