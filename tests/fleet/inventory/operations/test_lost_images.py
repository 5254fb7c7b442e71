"""An image of which only the request is known: it keeps no machine from being stopped, and ends with its machine."""

from __future__ import annotations

import pytest

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import OperationOpen
from fleet.inventory.operations.requests import request_reboot, request_save_image, request_stop
from fleet.providers.errors import Unavailable
from tests.fleet.inventory.operations.liar import Liar

QUARTER = 900


@pytest.fixture
def lost(machine, by_alice, driver, monkeypatch) -> Operation:
    """The provider made nothing, and answered nothing that says so."""

    def nothing(_self: Liar, *_args: object) -> None:
        raise Unavailable("time-out")

    monkeypatch.setattr(Liar, "save_image", nothing)
    operation = request_save_image(actor=by_alice, instance=machine, name="before")
    driver.run(60)
    return operation


def test_after_a_quarter_of_an_hour_a_stop_takes_its_place(lost, machine, by_alice, driver, fresh):
    with pytest.raises(OperationOpen):
        request_stop(actor=by_alice, instance=machine)
    driver.run(QUARTER)
    with pytest.raises(OperationOpen):
        request_reboot(actor=by_alice, instance=machine)
    request_stop(actor=by_alice, instance=machine)
    assert (fresh(lost).state, fresh(lost).error_kind) == ("failed", "superseded")


def test_an_image_that_the_provider_named_is_waited_for(machine, by_alice, driver, world):
    request_save_image(actor=by_alice, instance=machine, name="before")
    driver.step()
    world.images = {key: (image, world.now.replace(year=2030)) for key, (image, _) in world.images.items()}
    driver.run(2 * QUARTER)
    with pytest.raises(OperationOpen):
        request_stop(actor=by_alice, instance=machine)


def test_it_ends_with_its_machine(lost, driver, fresh):
    assert fresh(lost).state == "verifying"
    Instance.objects.update(gone_at=driver.now)
    driver.run(120)
    assert (fresh(lost).state, fresh(lost).error_kind) == ("failed", "gone")
