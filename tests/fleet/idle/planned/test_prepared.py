"""The machine's own pre-stop action before a planned stop, and the saving after it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.idle.hooks.ending import end_run
from fleet.idle.hooks.models import HookRun, HookState
from fleet.idle.planned import preparing
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.shutdown.models import IdleSaving
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.models import Operation

pytestmark = pytest.mark.django_db


@pytest.fixture
def hooks(monkeypatch):
    """The machine has one; what it does, the test says."""

    def begin(*, instance, timeout, now):
        return HookRun.objects.create(
            instance=instance, way="agent", asked_at=now, deadline=now + timeout, state=HookState.RUNNING,
        )  # fmt: skip

    monkeypatch.setattr(preparing, "begin_hook", begin)
    monkeypatch.setattr("fleet.idle.hooks.running._take_word_of_agent", lambda _run, _now: None)


def end(state: HookState, driver, **more) -> None:
    assert end_run(HookRun.objects.get(state="running"), state, at=driver.now, **more)


def test_it_runs_before_the_order_and_once(hooks, plan, carry, fresh, driver):
    action = plan()
    for _ in range(3):
        carry(minutes=1)
    assert (fresh(action).state, fresh(action).waits_for, HookRun.objects.count()) == ("planned", "hook", 1)
    assert not Operation.objects.exists()
    end(HookState.DONE, driver)
    carry(minutes=1)
    assert fresh(action).state == "taken"


@pytest.mark.parametrize(("goes_on", "state"), [(False, "failed"), (True, "taken")])
def test_one_that_fails_keeps_the_machine_unless_its_policy_stops_without_it(
    hooks, plan, carry, fresh, driver, acme, goes_on, state
):
    IdlePolicy.objects.create(team=acme, name="All", stop_without_hook=goes_on)
    action = plan()
    carry()
    end(HookState.FAILED, driver, code="said_no", last_line="disk full")
    carry(minutes=1)
    assert fresh(action).state == state
    if not goes_on:
        assert (fresh(action).error_kind, "disk full" in fresh(action).error_detail) == ("hook_failed", True)
        carry(minutes=6)
        assert HookRun.objects.filter(state="running").count() == 1


def test_one_that_does_not_end_has_failed_after_its_time(hooks, plan, carry, fresh):
    action = plan()
    carry()
    carry(minutes=11)
    assert (fresh(action).state, fresh(action).error_kind) == ("failed", "hook_failed")


def test_after_a_hold_it_runs_anew(hooks, plan, carry, fresh, driver, hold):
    action = plan()
    carry()
    end(HookState.DONE, driver)
    kept = hold()
    carry(minutes=1)
    assert fresh(action).waits_for == "held"
    kept.delete()
    carry(minutes=2)
    assert (fresh(action).state, HookRun.objects.count()) == ("planned", 2)


def test_none_is_run_for_an_order_that_would_be_refused(hooks, plan, carry, fresh):
    ProviderAccount.objects.update(monitor_only=True)
    action = plan()
    carry()
    assert (fresh(action).error_kind, HookRun.objects.count()) == ("monitor_only", 0)


def test_what_a_stop_saves_is_booked_once_with_its_proof(plan, carry, fresh):
    action = plan()
    carry()
    carry(minutes=5)
    carry(minutes=5)
    saving = IdleSaving.objects.get()
    done = fresh(action)
    assert (saving.planned_action, saving.currency) == (done, "USD")
    assert done.operation.requested_at <= saving.since <= done.ended_at
    assert saving.price_per_hour is not None
    assert saving.most_until == saving.since + timedelta(days=7)


def test_a_start_saves_nothing(plan, carry, off):
    off()
    plan("start", told=False)
    carry()
    carry(minutes=5)
    assert not IdleSaving.objects.exists()
