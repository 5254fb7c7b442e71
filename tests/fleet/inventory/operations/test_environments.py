"""Environments go along with operations: from a machine to its saved image, from an image to the machine that is launched of it."""

from __future__ import annotations

import pytest

from fleet.inventory.environments.carry import carried_along
from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of, versions_of
from fleet.inventory.models import EnvironmentReport, Image
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_launch, request_save_image
from fleet.providers.base import CreateSpec
from tests.fleet.inventory.operations.liar import NOON

FOUND = {"driver": "570.124.06", "frameworks": {"torch": "2.8.0+cu128"}}


@pytest.fixture
def saved(driver, machine, by_alice) -> Image:
    EnvironmentReport.objects.create(instance=machine, reported_at=NOON, digest="d", data=FOUND)
    request_save_image(actor=by_alice, instance=machine, name="vision 2.5")
    driver.run(600)
    return Image.objects.get(name="vision 2.5")


def test_a_proved_save_gives_the_image_its_environment(saved, machine):
    assert Operation.objects.get().state == "proved"
    assert versions_of(environment_of(saved)).value("torch") == "2.8.0+cu128"
    assert Environment.objects.get().carried_from == machine.name


def test_an_unproved_one_gives_nothing(driver, machine, by_alice):
    request_save_image(actor=by_alice, instance=machine, name="vision 2.5")
    driver.run(10)
    assert Operation.objects.get().state != "proved"
    assert not Environment.objects.exists()


def test_the_next_listing_finds_the_image_that_is_there(saved, driver):
    driver.poll()
    image = Image.objects.get(name="vision 2.5")
    assert (image.pk, image.gone_at) == (saved.pk, None)
    assert Environment.objects.get().image == image


def test_a_launch_takes_along_what_is_known_of_its_image(saved, rented, by_alice):
    spec = CreateSpec(name="new", offer_id="small", image_id=saved.external_id)
    operation = request_launch(actor=by_alice, account=rented, spec=spec, offer={})
    environment = Operation.objects.get(pk=operation.pk).spec["environment"]
    assert (environment["image"], environment["versions"]["frameworks"]) == (saved.pk, {"torch": "2.8.0+cu128"})
    assert carried_along(rented, "another") is None
