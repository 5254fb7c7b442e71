"""Each way a provider lies, by name: what is shown meanwhile, what is done about it, and that it ends by proof."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import (
    request_launch,
    request_reboot,
    request_save_image,
    request_start,
    request_stop,
    request_terminate,
)
from fleet.providers.base import Billing, CreateSpec, InstanceState, Part, StopSemantics
from tests.fleet.inventory.operations.liar import Liar

SPEC = CreateSpec(name="train-02", offer_id="h100x8")
HOUR = 3600


@pytest.fixture(params=["liar", "lists_only"])
def kind(request) -> str:
    """With and without a way to ask for one machine."""
    return str(request.param)


@pytest.fixture
def stop(machine, by_alice) -> Operation:
    return request_stop(actor=by_alice, instance=machine)


@pytest.fixture
def truth(world, machine):
    return world.machines[machine.external_id]


def steps(operation: Operation) -> list[str]:
    return list(operation.events.order_by("pk").values_list("kind", flat=True))


class TestHonest:
    def test_a_stop(self, stop, driver, fresh, machine, world):
        driver.run(60)
        done = fresh(stop)
        assert (done.state, done.proof) == ("proved", "state")
        assert (fresh(machine).state, fresh(machine).billing) == ("stopped", "storage")
        assert steps(done) == ["requested", "sent", "accepted", "verifying", "proved"]
        assert world.calls == [("stop", machine.external_id)]

    def test_a_termination(self, machine, by_alice, driver, fresh):
        operation = request_terminate(actor=by_alice, instance=machine, accept_loss=True)
        driver.run(120)
        assert (fresh(operation).state, fresh(operation).proof) == ("proved", "gone")
        assert fresh(machine).gone_at is not None
        assert machine.observations.latest("pk").listed is False

    def test_a_start(self, machine, by_alice, driver, fresh, world, truth):
        world.enter(truth, InstanceState.STOPPED)
        operation = request_start(actor=by_alice, instance=machine)
        driver.run(60)
        assert fresh(operation).state == "proved"
        assert fresh(machine).state == "running"

    def test_a_restart(self, machine, by_alice, driver, fresh):
        operation = request_reboot(actor=by_alice, instance=machine)
        driver.run(60)
        assert (fresh(operation).state, fresh(operation).proof) == ("proved", "restarted")

    def test_an_image(self, machine, by_alice, driver, fresh, world):
        operation = request_save_image(actor=by_alice, instance=machine, name="before the upgrade")
        driver.run(40)
        assert fresh(operation).state == "verifying"
        driver.run(60)
        assert (fresh(operation).state, fresh(operation).proof) == ("proved", "image")
        assert fresh(operation).result_id in world.images

    def test_a_launch(self, rented, by_alice, driver, fresh, project, world):
        operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={}, project=project)
        driver.step()
        instance = Instance.objects.get()
        assert (instance.state, instance.billing, instance.managed) == ("unknown", "unknown", True)
        driver.run(60)
        assert fresh(operation).state == "proved"
        assert (fresh(instance).state, fresh(instance).project, fresh(instance).owner) == (
            "running",
            project,
            by_alice.user,
        )
        assert len(world.machines) == 1


def test_200_and_still_running(stop, machine, driver, fresh, world):
    """Accepted, nothing happens: it is shown running, and told again until it stops."""
    world.lies["ignored"] = 3
    driver.run(200)
    assert (fresh(stop).state, fresh(machine).state) == ("verifying", "running")
    assert "sent_again" in steps(stop)
    driver.run(2 * HOUR)
    assert fresh(stop).state == "proved"
    assert fresh(stop).attempts == 4
    assert fresh(stop).burnt(driver.now) > 0


def test_accepted_and_forgotten(stop, machine, driver, fresh, world):
    """It begins to stop, and runs again."""
    world.lies["forgotten"] = 1
    driver.run(10)
    assert fresh(machine).state == "stopping"
    driver.run(40)
    assert (fresh(stop).state, fresh(machine).state) == ("verifying", "running")
    driver.run(HOUR)
    assert (fresh(stop).state, fresh(stop).attempts) == ("proved", 2)


def test_429_storms(stop, driver, fresh, world):
    world.lies["busy"] = 12
    driver.step()
    waiting = fresh(stop)
    assert (waiting.state, waiting.error_kind, waiting.uncertain) == ("requested", "rate_limited", False)
    assert waiting.next_at >= driver.now + timedelta(seconds=20)
    driver.run(3 * HOUR)
    assert fresh(stop).state == "proved"
    assert steps(stop).count("waiting") == 1


def test_500_for_an_hour(stop, machine, driver, fresh, world):
    world.until["broken"] = world.now + timedelta(hours=1)
    driver.run(HOUR)
    unknown = fresh(stop)
    assert (unknown.state, unknown.error_kind, unknown.uncertain) == ("verifying", "unavailable", True)
    assert fresh(machine).state == "running"
    driver.run(HOUR)
    assert fresh(stop).state == "proved"


def test_410(stop, machine, driver, fresh, world):
    """The address of the list is gone: that says nothing of a machine."""
    world.lies["gone"] = 40
    driver.run(600)
    assert (fresh(stop).state, fresh(machine).state, fresh(machine).gone_at) == ("verifying", "running", None)
    world.lies["gone"] = 0
    driver.run(HOUR)
    assert fresh(stop).state == "proved"


def test_delayed_listing(rented, by_alice, driver, fresh, world):
    """Three lists without it would be the end of another machine; this one has not been listed yet."""
    world.lies["late"] = 1
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})
    for _ in range(6):
        driver.run(30)
        driver.poll()
    instance = Instance.objects.get()
    assert (instance.state, instance.gone_at, fresh(operation).state) == ("unknown", None, "verifying")
    driver.run(600)
    assert (fresh(operation).state, fresh(instance).state) == ("proved", "running")


def test_created_although_an_error_was_answered(rented, by_alice, driver, fresh, world):
    world.lies["lost"] = 1
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})
    driver.run(90)
    assert fresh(operation).state == "proved"
    assert Instance.objects.get().managed
    assert "found" in steps(operation)
    assert len(world.machines) == 1


def test_an_error_that_names_a_machine(rented, by_alice, driver, fresh, world):
    world.lies["partial"] = 1
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})
    driver.step()
    assert Instance.objects.get().external_id in world.machines
    driver.run(60)
    assert (fresh(operation).state, steps(operation)[2]) == ("proved", "partial")


def test_terminated_and_back_again(machine, by_alice, driver, fresh, world):
    world.lies["returns"] = 1
    operation = request_terminate(actor=by_alice, instance=machine, accept_loss=True)
    driver.run(120)
    assert fresh(operation).state == "proved"
    driver.run(120)
    driver.poll()
    assert (fresh(machine).state, fresh(machine).gone_at) == ("running", None)
    driver.run(300)
    assert "reopened" in steps(operation)
    assert fresh(operation).state == "proved"
    assert world.machines[machine.external_id].state == InstanceState.TERMINATED


def test_not_done_and_no_answer(stop, driver, fresh, world):
    """A time-out is no failure, and no success."""
    world.lies["dropped"] = 1
    driver.run(30)
    assert (fresh(stop).state, steps(stop)[:3]) == ("verifying", ["requested", "sent", "unanswered"])
    driver.run(HOUR)
    assert fresh(stop).state == "proved"


def test_a_launch_that_was_never_taken_is_sent_again_only_where_the_token_is_kept(
    rented, by_alice, driver, fresh, world, kind
):
    world.lies["dropped"] = 1
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={})
    driver.run(HOUR)
    kept = kind == "liar"
    assert fresh(operation).state == ("proved" if kept else "verifying")
    assert [word for word, _ in world.calls] == ["create"] * (2 if kept else 1)


def test_stopped_and_still_billed_in_full_is_no_proof(stop, machine, driver, fresh, world, monkeypatch):
    monkeypatch.setattr("tests.fleet.inventory.operations.liar.BILLING", {})
    driver.run(200)
    assert (fresh(stop).state, fresh(machine).state, fresh(machine).billing) == ("verifying", "stopped", "full")


def test_where_a_stop_always_bills_in_full_the_state_is_all_there_is(stop, machine, driver, fresh, monkeypatch):
    monkeypatch.setattr("tests.fleet.inventory.operations.liar.BILLING", {})
    halts = StopSemantics(can_stop=True, billed_when_stopped=frozenset({Part.COMPUTE}))
    monkeypatch.setattr(Liar, "semantics", halts)
    driver.run(60)
    assert fresh(stop).state == "proved"
    assert fresh(machine).billing == Billing.FULL


def test_it_is_never_given_up(stop, machine, driver, fresh, world):
    """A month of it: still asked for, at least every ten minutes."""
    world.until["broken"] = world.now + timedelta(days=30)
    driver.run(600)
    driver.wait(29 * 86_400)
    driver.step()
    waiting = fresh(stop)
    assert waiting.is_open
    assert waiting.next_at <= driver.now + timedelta(minutes=10)
