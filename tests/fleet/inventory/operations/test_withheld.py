"""What people take back after an act was asked for: nothing is sent any more, and what was sent is read on."""

from __future__ import annotations

import pytest

from fleet.inventory.machines import place_hold, release_hold
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import Held, Paused
from fleet.inventory.operations.requests import request_launch, request_reboot, request_stop, request_terminate
from fleet.providers.base import CreateSpec, InstanceState
from tests.fleet.inventory.operations.liar import NOON

LONG = 1800


@pytest.fixture
def stop(machine, by_alice) -> Operation:
    return request_stop(actor=by_alice, instance=machine)


def steps(operation: Operation) -> list[str]:
    return list(operation.events.order_by("pk").values_list("kind", flat=True))


def look_only():
    ProviderAccount.objects.update(monitor_only=True)


def pause():
    ProviderAccount.objects.update(enabled=False)


def unregister():
    Instance.objects.update(managed=False)


@pytest.mark.parametrize(
    ("take_back", "code"), [(look_only, "monitor_only"), (pause, "paused"), (unregister, "unmanaged")]
)
class TestPermission:
    def test_what_was_not_sent_yet_fails(self, stop, driver, world, fresh, take_back, code):
        take_back()
        driver.run(60)
        assert (fresh(stop).state, fresh(stop).error_kind) == ("failed", code)
        assert world.calls == []

    def test_what_came_to_nothing_is_not_sent_again_but_read_on(self, stop, driver, world, fresh, take_back, code):
        world.lies["ignored"] = 1
        driver.run(30)
        take_back()
        driver.run(LONG)
        waiting = fresh(stop)
        assert len(world.calls) == 1
        assert (waiting.state, waiting.error_kind) == ("verifying", code)
        assert steps(waiting).count("withheld") == 1
        world.enter(world.machines[stop.instance.external_id], InstanceState.STOPPED)
        driver.run(LONG)
        assert fresh(stop).state == "proved"


def test_a_permission_that_is_given_back_sends_it_again(stop, driver, world, fresh):
    world.lies["ignored"] = 1
    driver.run(30)
    look_only()
    driver.run(LONG)
    ProviderAccount.objects.update(monitor_only=False)
    driver.run(LONG)
    assert len(world.calls) == 2
    assert fresh(stop).state == "proved"


def test_a_launch_that_was_not_sent_yet_rents_nothing(rented, by_alice, driver, world, fresh):
    launch = request_launch(actor=by_alice, account=rented, spec=CreateSpec(name="t", offer_id="h100x8"), offer={})
    look_only()
    driver.run(60)
    assert (fresh(launch).error_kind, world.calls) == ("monitor_only", [])


def test_a_permission_that_goes_while_the_provider_is_read_counts(stop, driver, world):
    world.lies["ignored"] = 1
    driver.run(30)
    world.interrupt = lambda step: look_only() if step == "before instance" else None
    driver.run(LONG)
    assert len(world.calls) == 1


class TestHolds:
    def test_a_hold_before_the_first_call(self, stop, driver, world, fresh, by_alice):
        place_hold(actor=by_alice, instance=stop.instance, reason="benchmark", now=NOON)
        driver.run(60)
        assert (fresh(stop).state, fresh(stop).error_kind, world.calls) == ("failed", "held", [])

    def test_a_hold_on_what_comes_back_keeps_it_until_it_is_released(self, machine, driver, world, fresh, by_alice):
        world.lies["returns"] = 1
        operation = request_terminate(actor=by_alice, instance=machine, accept_loss=True)
        driver.run(120)
        hold = place_hold(actor=by_alice, instance=machine, reason="it is needed after all", now=driver.now)
        driver.run(120)
        driver.poll()
        driver.run(LONG)
        assert [word for word, _ in world.calls] == ["terminate"]
        assert (fresh(operation).state, fresh(operation).error_kind) == ("verifying", "held")
        release_hold(actor=by_alice, hold=hold, now=driver.now)
        driver.run(LONG)
        assert [word for word, _ in world.calls] == ["terminate", "terminate"]

    def test_a_reason_overrides_the_holds_of_its_day_alone(self, machine, driver, world, fresh, by_alice):
        place_hold(actor=by_alice, instance=machine, reason="sweep", now=NOON)
        world.lies["ignored"] = 1
        driver.wait(1)
        operation = request_stop(actor=by_alice, instance=machine, override_reason="the room floods")
        driver.run(30)
        assert len(world.calls) == 1
        place_hold(actor=by_alice, instance=machine, reason="no it does not", now=driver.now)
        driver.run(LONG)
        assert (len(world.calls), fresh(operation).error_kind) == (1, "held")

    def test_a_restart_asks_holds_as_a_stop_does(self, machine, driver, world, by_alice):
        place_hold(actor=by_alice, instance=machine, reason="training", now=driver.now)
        with pytest.raises(Held):
            request_reboot(actor=by_alice, instance=machine)
        request_reboot(actor=by_alice, instance=machine, override_reason="it hangs")
        driver.step()
        assert [word for word, _ in world.calls] == ["reboot"]


def test_nothing_is_asked_of_an_account_whose_reading_is_paused(machine, by_alice):
    pause()
    with pytest.raises(Paused, match="Read it again first"):
        request_stop(actor=by_alice, instance=machine)
