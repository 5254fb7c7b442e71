"""The machine at a lying provider, as for planned acts."""

from __future__ import annotations

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
