"""A saved image takes along what was known of its machine when it was asked for."""

from __future__ import annotations

from fleet.inventory.environments.carry import carry_environment
from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of, versions_of
from fleet.inventory.environments.writing import edit_environment
from fleet.inventory.models import Image
from fleet.providers.base import ProviderImage
from tests.fleet.inventory.environments.conftest import NOON

SAVED = ProviderImage("img-2", "vision 2.5", NOON)


def test_versions_and_runbook_go_along(image, machine, report, by_bob):
    values = {"typed": {"cuda": "12.8"}, "commands": "torchrun train.py", "notes": "for the lab"}
    edit_environment(actor=by_bob, environment=environment_of(image), values=values, now=NOON)
    report(machine)
    report(machine, minutes=30, python="3.13.0")
    carry_environment(machine=machine, image=SAVED, since=NOON)
    saved = Image.objects.get(external_id="img-2")
    environment = environment_of(saved)
    versions = versions_of(environment)
    assert {line.name: line.value for line in versions.lines} == {
        "driver": "570.124.06", "cuda": "12.8", "cudnn": "9.10.2", "nccl": "2.27.3", "python": "3.11.11",
        "torch": "2.8.0+cu128", "vllm": "0.11.0", "flash-attn": "2.8.3",
    }  # fmt: skip
    assert {said.kind for line in versions.lines for said in line.said[:1]} == {"carried"}
    assert (environment.carried_from, environment.carried_at) == ("train-01", NOON)
    assert (environment.commands, environment.notes) == ("torchrun train.py", "for the lab")
    assert versions.is_container


def test_what_somebody_wrote_already_stays(image, machine, report, by_bob):
    saved = Image.objects.create(account=image.account, external_id="img-2", name="named by a person")
    edit_environment(actor=by_bob, environment=environment_of(saved), values={"notes": "mine"}, now=NOON)
    report(machine)
    carry_environment(machine=machine, image=SAVED, since=NOON)
    assert Environment.objects.get(image=saved).notes == "mine"
    assert Image.objects.get(external_id="img-2").name == "named by a person"


def test_a_machine_that_never_reported_carries_nothing(image, machine, report):
    report(machine, minutes=30)
    carry_environment(machine=machine, image=SAVED, since=NOON)
    assert Environment.objects.get(image__external_id="img-2").carried == {}
