"""Leases, the most that a policy lets machines run, and the deletion of what was left stopped: told well before, extended, called off, never without consent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.alerts.models import Alert
from fleet.alerts.planned_acts import call_off
from fleet.idle.leases.planning import plan_ends
from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.inventory.plans.models import PlannedAction
from fleet.inventory.plans.reasons import reason_text
from tests.fleet.idle.planned.conftest import HOUR

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def policy(acme):
    def make(**said):
        return IdlePolicy.objects.create(team=acme, name="Sandbox", **said)

    return make


@pytest.fixture
def lease(machine, driver):
    def until(hours):
        use, _new = MachineUse.objects.update_or_create(
            instance=machine, defaults={"lease_until": driver.now + hours * HOUR, "changed_at": driver.now}
        )
        return use

    return until


def standing() -> list[tuple[str, str]]:
    return list(PlannedAction.objects.filter(state="planned").values_list("source", "verb"))


class TestLease:
    def test_it_is_told_a_day_before_and_stopped_then(self, lease, driver, carry, fresh, machine):
        use = lease(24 * 7)
        assert plan_ends(now=use.lease_until - DAY - HOUR) == 0
        assert plan_ends(now=use.lease_until - DAY) == 1
        action = PlannedAction.objects.get()
        assert (action.verb, action.due_at, action.notice) == ("stop", use.lease_until, DAY)
        assert reason_text(action) == "it may run until then, and nobody has extended that"
        PlannedAction.objects.update(notified_at=driver.now)
        carry(minutes=60 * 24 * 7 + 1)
        carry(minutes=5)
        assert fresh(action).state == "done"

    def test_a_short_one_a_quarter_before(self, lease):
        use = lease(8)
        assert plan_ends(now=use.lease_until - 3 * HOUR) == 0
        assert plan_ends(now=use.lease_until - 2 * HOUR) == 1

    def test_planned_once(self, lease, driver):
        lease(0.1)
        driver.wait(400)
        assert [plan_ends(now=driver.now) for _ in range(3)] == [1, 0, 0]

    def test_extended_by_a_person_it_is_called_off(self, lease, driver):
        lease(0.1)
        driver.wait(400)
        plan_ends(now=driver.now)
        lease(100)
        plan_ends(now=driver.now)
        assert standing() == []
        assert PlannedAction.objects.get().ended_reason == "lifted"
        assert not Alert.objects.filter(cause="machine.planned_act", closed_at=None).exists()

    def test_extended_after_it_was_due_it_is_not_stopped(self, lease, driver, carry, fresh):
        lease(0.1)
        driver.wait(400)
        plan_ends(now=driver.now)
        PlannedAction.objects.update(notified_at=driver.now, due_at=driver.now)
        lease(100)
        carry()
        assert PlannedAction.objects.get().ended_reason == "lifted"

    def test_called_off_by_a_person_it_stays_off_until_there_is_another_end(self, lease, driver, by_alice):
        lease(0.1)
        driver.wait(400)
        plan_ends(now=driver.now)
        call_off(actor=by_alice, actions=PlannedAction.objects.all(), why="a run", now=driver.now)
        assert plan_ends(now=driver.now) == 0
        lease(1)
        assert plan_ends(now=driver.now + HOUR) == 1

    def test_what_is_started_after_its_end_has_a_new_life(self, lease, driver, machine):
        lease(1)
        type(machine).objects.update(started_at=driver.now + 2 * HOUR)
        assert plan_ends(now=driver.now + 3 * HOUR) == 0


class TestMaxAge:
    def test_no_machine_runs_longer_without_a_persons_word(self, policy, driver, machine, lease):
        policy(max_age_hours=72)
        assert plan_ends(now=machine.started_at + 53 * HOUR) == 0
        assert plan_ends(now=machine.started_at + 54 * HOUR) == 1
        action = PlannedAction.objects.get()
        assert (action.source, action.due_at) == ("max_age", machine.started_at + 72 * HOUR)
        assert "no machine run longer than 72 hours" in reason_text(action)
        lease(24 * 30)
        plan_ends(now=machine.started_at + 54 * HOUR)
        assert standing() == []

    def test_one_that_is_older_already_has_the_whole_notice(self, policy, driver, machine):
        policy(max_age_hours=8)
        now = machine.started_at + 100 * HOUR
        plan_ends(now=now)
        assert PlannedAction.objects.get().due_at == now + 2 * HOUR

    def test_a_policy_that_terminates_does_so_here(self, policy, machine):
        one = policy(max_age_hours=8, action="terminate", accept_loss=True)
        plan_ends(now=machine.started_at + 100 * HOUR)
        assert standing() == [("max_age", "terminate")]
        one.accept_loss = False
        one.save()
        plan_ends(now=machine.started_at + 100 * HOUR)
        assert standing() == [("max_age", "stop")]

    def test_that_data_may_be_lost_is_taken_back_with_the_policys_word_for_it(self, policy, machine):
        one = policy(max_age_hours=8, action="stop", accept_loss=True)
        plan_ends(now=machine.started_at + 100 * HOUR)
        one.accept_loss = False
        one.save()
        plan_ends(now=machine.started_at + 100 * HOUR)
        assert standing() == [("max_age", "stop")]
        assert PlannedAction.objects.get(state="planned").values["accept_loss"] is False

    @pytest.mark.parametrize("fields", [{"managed": False}, {"state": "unknown"}])
    def test_none_for_what_is_never_touched_or_not_known_to_run(self, policy, machine, fields):
        policy(max_age_hours=8)
        type(machine).objects.update(**fields)
        assert plan_ends(now=machine.started_at + 100 * HOUR) == 0


class TestDelete:
    @pytest.fixture
    def consent(self, policy, driver, off):
        off()
        return policy(delete_after_days=7, delete_consent_at=driver.now)

    def test_after_so_many_days_with_two_days_of_notice_and_the_loss_in_words(
        self, consent, driver, carry, fresh, world, machine
    ):
        stopped_at = fresh(machine).state_since
        assert plan_ends(now=stopped_at + 6 * DAY) == 0
        driver.wait(7 * 86400)
        driver.poll()
        assert plan_ends(now=driver.now) == 1
        action = PlannedAction.objects.get()
        assert (action.verb, action.due_at) == ("terminate", driver.now + 48 * HOUR)
        assert "it is deleted, with its disks and all that is on them, for good" in reason_text(action)
        assert Alert.objects.filter(cause="machine.planned_deletion").count() == 1
        carry(minutes=60 * 49)
        assert fresh(action).state == "planned"
        PlannedAction.objects.update(notified_at=driver.now)
        carry()
        carry(minutes=5)
        assert (fresh(action).state, [word for word, _id in world.calls]) == ("done", ["terminate"])

    def test_never_without_consent(self, consent, driver):
        IdlePolicy.objects.update(delete_consent_at=None)
        assert plan_ends(now=driver.now + 30 * DAY) == 0

    def test_consent_that_is_taken_back_calls_it_off(self, consent, driver, carry):
        plan_ends(now=driver.now + 8 * DAY)
        PlannedAction.objects.update(notified_at=driver.now, due_at=driver.now)
        IdlePolicy.objects.update(delete_consent_at=None)
        carry()
        assert PlannedAction.objects.get().ended_reason == "lifted"

    def test_not_one_that_is_billed_in_full(self, consent, driver, machine):
        type(machine).objects.update(billing="full")
        assert plan_ends(now=driver.now + 8 * DAY) == 0

    def test_one_that_is_started_again_is_let_be(self, consent, driver, machine):
        plan_ends(now=driver.now + 8 * DAY)
        type(machine).objects.update(state="running")
        plan_ends(now=driver.now + 9 * DAY)
        assert standing() == []


def test_the_queries_do_not_grow_with_machines(policy, make_instance, django_assert_num_queries, machine, driver):
    policy(max_age_hours=10_000)
    plan_ends(now=driver.now)
    for number in range(5):
        make_instance(name=f"m{number}")
    with django_assert_num_queries(7):
        plan_ends(now=driver.now)
