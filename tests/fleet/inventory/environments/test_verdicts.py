"""Whether an image runs on a machine or an offer: by names of GPUs as fleets have them, and unknown where nobody knows."""

from __future__ import annotations

import pytest

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.verdicts import (
    Place,
    gpu_choices,
    gpu_named,
    verdict_for,
    verdict_of_machine,
    verdicts_for,
)
from fleet.inventory.models import Image
from fleet.providers.gpus import NAMES
from planner.catalogue.gpus import gpus


@pytest.mark.parametrize("name", ["H100 SXM", "NVIDIA H100 80GB HBM3", "h100-sxm-80"])
def test_a_gpu_is_found_by_whatever_it_is_called(name):
    assert gpu_named(name) == gpus()["h100-sxm-80"]


def test_every_nvidia_name_of_ours_is_in_the_tables():
    makers = ("MI", "T4G")
    assert [name for name in NAMES if not name.startswith(makers) and gpu_named(name) is None] == []
    assert "H100 SXM" in gpu_choices()
    assert "MI300X" not in gpu_choices()


def test_of_an_image_on_a_machine_and_on_an_offer(image, machine, report):
    report(machine)
    good = verdict_for(image, "H100 SXM", "570.124.06")
    assert (good.level, good.unchecked) == ("full", ("flash-attn 2.8.3 is not in the tables: it is not checked.",))
    refused = verdict_for(image, "V100 SXM 32 GB", "570.124.06")
    assert refused.level == "refused"
    assert "no kernels for V100" in " ".join(remark.text for remark in refused.remarks)
    assert any(remark.fix for remark in refused.remarks)


def test_without_a_driver_a_container_is_not_judged(image, machine, report):
    report(machine)
    found = verdict_for(image, "H100 SXM")
    assert (found.level, found.words, found.unknown) == (
        "unknown",
        "not known",
        ("The driver of the machine is not known.",),
    )


def test_an_image_of_a_whole_machine_brings_its_driver(image, machine, report):
    report(machine, container="none")
    assert (verdict_for(image, "H100 SXM").level, verdict_for(image, "H100 SXM").driver) == ("full", "570.124.06")


def test_nothing_known_is_unknown(image):
    assert verdict_for(image, "H100 SXM", "570.124.06").level == "unknown"
    assert verdict_for(image, "Quantum 9000", "570.124.06").level == "unknown"


def test_of_what_lies_on_a_machine(machine, report):
    assert verdict_of_machine(machine).level == "unknown"
    report(machine, driver="525.85.12")
    assert verdict_of_machine(machine).level == "ptx-risk"


def test_of_a_list_in_the_queries_of_one(account, django_assert_num_queries):
    typed = {"frameworks": {"torch": "2.8.0+cu128"}}
    images = [Image.objects.create(account=account, external_id=f"img-{number}", name="x") for number in range(9)]
    for image in images:
        Environment.objects.create(team=account.team, image=image, name="x", typed=typed)
    with django_assert_num_queries(2):
        found = verdicts_for(images, Place("H100 SXM", "570.124.06"))
    assert {verdict.level for verdict in found.values()} == {"full"}
