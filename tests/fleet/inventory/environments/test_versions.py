"""Which of what was said of an image counts: typed before reported before carried along, each with who said it and when."""

from __future__ import annotations

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.sources import environment_of, versions_of, versions_of_images, versions_of_machine
from fleet.inventory.environments.versions import Line, Source, Versions, collect
from fleet.inventory.environments.writing import edit_environment
from fleet.inventory.models import Image
from tests.fleet.inventory.environments.conftest import FOUND, NOON


def line(versions: Versions, name: str) -> Line:
    found = versions.line(name)
    assert found is not None
    return found


def test_the_newest_report_of_a_machine_that_ran_it(image, machine, make_instance, report):
    report(machine, minutes=5, python="3.12.1")
    report(machine)
    other = make_instance(name="train-02", image=image, gone_at=NOON)
    report(other, minutes=9, driver="580.95.05")
    report(make_instance(name="elsewhere"), minutes=20, driver="1.0")
    driver = line(versions_of(environment_of(image)), "driver")
    assert (driver.value, driver.said[0].kind, driver.said[0].who) == ("580.95.05", "reported", "train-02")
    assert driver.said[0].at == NOON.replace(minute=9)


def test_typed_wins_and_both_are_kept(image, machine, report, by_bob):
    report(machine)
    typed = {"python": "3.10", "cuda": "12.9", "frameworks": {"vllm": "0.10.0"}}
    edit_environment(actor=by_bob, environment=environment_of(image), values={"typed": typed}, now=NOON)
    versions = versions_of(environment_of(image))
    python = line(versions, "python")
    assert [(said.value, said.kind, said.who) for said in python.said] == [
        ("3.10", "typed", "bob"),
        ("3.11.11", "reported", "train-01"),
    ]
    assert python.is_disputed
    assert versions.value("vllm") == "0.10.0"
    assert (versions.value("torch"), versions.value("cudnn")) == ("2.8.0+cu128", "9.10.2")


def test_cuda_is_read_off_the_build_of_torch(image, machine, report):
    report(machine)
    versions = versions_of(environment_of(image))
    assert (versions.value("cuda"), line(versions, "cuda").said[0].kind, versions.toolkit) == ("12.8", "build", "")


def test_a_container_has_the_driver_of_its_host(image, machine, report):
    report(machine)
    assert versions_of(environment_of(image)).own_driver == ""
    report(machine, minutes=1, container="none")
    assert versions_of(environment_of(image)).own_driver == "570.124.06"


def test_of_many_images_in_as_many_queries(account, make_instance, report, django_assert_num_queries):
    images = [Image.objects.create(account=account, external_id=f"img-{number}", name="x") for number in range(20)]
    for image in images:
        report(make_instance(name=f"of {image.external_id}", image=image))
    with django_assert_num_queries(2):
        found = versions_of_images(images)
    assert {versions.value("driver") for versions in found.values()} == {"570.124.06"}


def test_a_machine_is_what_its_agent_found_and_its_image_fills_in(image, machine, report):
    Environment.objects.create(team=machine.team, image=image, name="x", typed={"driver": "1", "cuda": "12.9"})
    report(machine)
    versions = versions_of_machine(machine)
    assert (versions.value("driver"), versions.toolkit) == ("570.124.06", "12.9")


def test_nothing_known_is_nothing():
    assert collect([]).lines == ()
    assert collect([]).known.torch == ""


def test_what_is_no_text_is_left_out():
    hostile = {"driver": ["570"], "python": {"a": 1}, "cudnn": "  ", "frameworks": ["torch"], "container": 7}
    assert collect([Source("reported", NOON, "m", hostile)]).lines == ()
    many = {"frameworks": {f"p{number}": "1" for number in range(500)} | {"": "1", "x": None}}
    assert len(collect([Source("reported", NOON, "m", many)]).packages) == 64


def test_looking_writes_nothing(image, machine, report):
    report(machine, **FOUND)
    versions_of(environment_of(image))
    assert not Environment.objects.exists()
