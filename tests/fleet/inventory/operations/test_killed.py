"""A worker that dies at any border between two steps: the next one goes on from the rows, and nothing is done twice that must not be."""

from __future__ import annotations

from itertools import count

import pytest

from fleet.inventory.models import Instance
from fleet.inventory.operations.claims import LEASE
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import (
    request_launch,
    request_reboot,
    request_save_image,
    request_start,
    request_stop,
    request_terminate,
)
from fleet.providers.base import CreateSpec, InstanceState
from tests.fleet.inventory.operations.killing import Killed, Killer, killing


@pytest.fixture
def rent(world, driver):
    """rent(state) is one more machine of ours."""

    def make(state: InstanceState) -> Instance:
        truth = world.add(state=state)
        driver.poll()
        driver.wait(1)
        Instance.objects.update(managed=True)
        return Instance.objects.select_related("account", "team").get(external_id=truth.id)

    return make


def run_with(killer: Killer, driver, operation: Operation) -> None:
    """By workers of which one is killed, until it has ended; an operation that never ends is asked for ten times."""
    with killing(killer):
        for _ in range(10):
            try:
                driver.step()
            except Killed:
                driver.wait(LEASE.total_seconds())
            operation.refresh_from_db()
            if not operation.is_open:
                break
            driver.wait(12)


def at_each_border(driver, begin, check, *, at_least: int) -> None:
    """One operation for each border that there is."""
    for at in count():
        killer = Killer(at)
        operation = begin()
        run_with(killer, driver, operation)
        assert operation.state == "proved", killer.where
        check(operation, killer.where)
        if not killer.fired:
            assert at >= at_least
            return


@pytest.mark.parametrize(
    ("request_it", "before", "after", "more"),
    [
        (request_stop, InstanceState.RUNNING, InstanceState.STOPPED, {}),
        (request_start, InstanceState.STOPPED, InstanceState.RUNNING, {}),
        (request_terminate, InstanceState.RUNNING, InstanceState.TERMINATED, {"accept_loss": True}),
    ],
)
def test_an_act_that_may_be_said_twice(driver, world, rent, by_alice, request_it, before, after, more):
    def begin() -> Operation:
        operation: Operation = request_it(actor=by_alice, instance=rent(before), **more)
        return operation

    def check(operation: Operation, where: str) -> None:
        machine = Instance.objects.get(operations=operation)
        assert world.machines[machine.external_id].state is after, where
        assert machine.state == after, where

    at_each_border(driver, begin, check, at_least=9)


def test_a_machine_is_rented_once(driver, world, rented, by_alice):
    spec = CreateSpec(name="train-02", offer_id="h100x8")

    def check(operation: Operation, where: str) -> None:
        assert sum(operation.token in machine.name for machine in world.machines.values()) == 1, where
        assert Instance.objects.get(operations=operation).managed, where

    at_each_border(
        driver,
        lambda: request_launch(actor=by_alice, account=rented, spec=spec, offer={}),
        check,
        at_least=9,
    )
    assert Instance.objects.count() == len(world.machines)


def test_where_the_token_is_not_kept_a_machine_is_rented_at_most_once(driver, world, rented, by_alice, monkeypatch):
    """Killed between the announcement and the call, nobody knows: it is looked for, and never ordered twice."""
    monkeypatch.setattr("tests.fleet.inventory.operations.liar.Liar.create_is_idempotent", False)
    spec = CreateSpec(name="train-02", offer_id="h100x8")
    for at in range(9):
        operation = request_launch(actor=by_alice, account=rented, spec=spec, offer={})
        run_with(Killer(at), driver, operation)
        orders = sum(token == operation.token for word, token in world.calls if word == "create")
        assert orders <= 1
        assert (operation.state == "proved") is (orders == 1)


def test_a_machine_is_restarted_and_saved_at_most_once(driver, world, rent, by_alice):
    for at in range(0, 12, 2):
        for request_it, more in ((request_reboot, {}), (request_save_image, {"name": f"image {at}"})):
            machine = rent(InstanceState.RUNNING)
            operation = request_it(actor=by_alice, instance=machine, **more)
            run_with(Killer(at), driver, operation)
            calls = [word for word, name in world.calls if name == machine.external_id]
            assert len(calls) <= 1
            assert (operation.state == "proved") is (len(calls) == 1)
