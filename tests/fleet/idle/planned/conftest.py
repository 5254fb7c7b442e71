"""A machine at a provider whose truth the test knows, acts that are planned for it, and whoever carries them out, wound by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.idle.planned.tasks import carry_out_planned
from fleet.inventory.models import Hold
from fleet.inventory.plans.models import PlannedAction
from fleet.providers.base import InstanceState
from tests.fleet.inventory.operations.conftest import (  # noqa: F401
    by_alice,
    clock,
    driver,
    fresh,
    kind,
    machine,
    rented,
    world,
)

HOUR = timedelta(hours=1)


@pytest.fixture
def plan(machine, driver):  # noqa: F811
    """plan("stop", hours=2) is due in two hours, and its owner was told just now."""

    def write(verb="stop", *, hours=0.0, told=True, source="test:1", **values):
        return PlannedAction.objects.create(
            team=machine.team, instance=machine, verb=verb, due_at=driver.now + hours * HOUR, source=source,
            reason="it was agreed", values=values, notified_at=driver.now if told else None, created_at=driver.now,
        )  # fmt: skip

    return write


@pytest.fixture
def hold(machine, driver):  # noqa: F811
    def place(hours=None, **fields):
        until = None if hours is None else driver.now + hours * HOUR
        return Hold.objects.create(
            instance=machine, kind="person", reason="a run", started_at=driver.now, expires_at=until, **fields
        )

    return place


@pytest.fixture
def carry(driver):  # noqa: F811
    """carry(minutes=5) lets so much time pass in which operations go on, and carries out what is due then."""

    def on(*, minutes=0.0):
        if minutes:
            driver.run(minutes * 60)
        return carry_out_planned()

    return on


@pytest.fixture
def off(world, driver, machine):  # noqa: F811
    """The machine is off, and was read so."""

    def switch():
        for truth in world.machines.values():
            world.enter(truth, InstanceState.STOPPED)
        driver.wait(1)
        driver.poll()

    return switch
