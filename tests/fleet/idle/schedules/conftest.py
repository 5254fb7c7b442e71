"""A machine at a lying provider on Monday, 30 November 2026, 13:00 in Berlin, and schedules of it."""

from __future__ import annotations

from datetime import time

import pytest

from fleet.idle.schedules.manage import ScheduleSaid, save_schedule
from tests.fleet.idle.planned.conftest import carry, hold, off  # noqa: F401
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


@pytest.fixture
def schedule(acme, by_alice, machine, driver):  # noqa: F811
    """schedule(stop="20:00") is one of the machine, in Berlin, from now on."""
    acme.time_zone = "Europe/Berlin"
    acme.save()

    def make(start="08:00", stop="20:00", **said):
        clocks = {"start_at": start and time.fromisoformat(start), "stop_at": stop and time.fromisoformat(stop)}
        words = {"name": "Nights", "machines": frozenset({machine.pk}), **clocks, **said}
        return save_schedule(actor=by_alice, team=acme, said=ScheduleSaid(**words), now=driver.now)

    return make
