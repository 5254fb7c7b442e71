"""Whether an image runs on a machine or an offer, in the planner's words. What nobody knows stays unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from fleet.inventory.environments.sources import (
    environment_of,
    newest_report,
    versions_of,
    versions_of_images,
    versions_of_machine,
)
from fleet.inventory.environments.versions import Versions, text_of
from fleet.inventory.environments.words import MARKS, UNKNOWN, verdict_word
from fleet.inventory.models import Image, Instance
from fleet.providers.gpus import canonical
from planner.catalogue.gpus import MIB, Gpu, gpus
from planner.compatibility.fit import Fit, fit
from planner.web.words import sentence


@dataclass(frozen=True, slots=True)
class Place:
    """What an image is to run on. `driver` "": not known, as with most offers."""

    gpu_model: str
    driver: str = ""
    gpus: int = 1


@dataclass(frozen=True, slots=True)
class Remark:
    level: str
    text: str
    fix: str

    @property
    def mark(self) -> str:
        return MARKS.get(self.level, "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`level`: full, minor, ptx-risk, refused or unknown. `unknown`: what is missing for one to be given; `unchecked`: parts that it leaves out."""

    level: str
    remarks: tuple[Remark, ...]
    unknown: tuple[str, ...]
    unchecked: tuple[str, ...]
    gpu_model: str
    driver: str

    @property
    def words(self) -> str:
        return verdict_word(self.level)

    @property
    def mark(self) -> str:
        return MARKS.get(self.level, "")


def verdict_for(image: Image, gpu_model: str, driver_version: str = "", *, gpus: int = 1) -> Verdict:
    """Of an image on a GPU. Without `driver_version` the image's own driver counts, where it brings one."""
    return judge(versions_of(environment_of(image)), Place(gpu_model, driver_version, gpus))


def verdicts_for(images: Iterable[Image], place: Place) -> dict[int, Verdict]:
    """By the image's id, in the queries of one."""
    return {pk: judge(versions, place) for pk, versions in versions_of_images(images).items()}


def verdict_of_machine(instance: Instance) -> Verdict:
    """What lies on a machine, on that machine."""
    return judge(versions_of_machine(instance), place_of(instance))


def place_of(instance: Instance) -> Place:
    report = newest_report(instance)
    driver = text_of(report.data.get("driver")) if report and isinstance(report.data, dict) else ""
    return Place(instance.gpu_model, driver, instance.gpu_count or 1)


def judge(versions: Versions, place: Place) -> Verdict:
    driver = place.driver or versions.own_driver
    found = fit(gpu_named(place.gpu_model), driver, versions.known, gpus=place.gpus)
    return Verdict(
        level=found.level or UNKNOWN,
        remarks=remarks_of(found),
        unknown=tuple(sentence(each) for each in found.unknown),
        unchecked=tuple(sentence(each) for each in found.unchecked),
        gpu_model=place.gpu_model,
        driver=driver,
    )


def remarks_of(found: Fit) -> tuple[Remark, ...]:
    return tuple(
        Remark(each.level, sentence(each.reason), sentence(each.fix) if each.fix else "") for each in found.findings
    )


def gpu_named(model: str) -> Gpu | None:
    """The row of the tables for one of our names, NVML's, or the tables' own. None: in no table."""
    known = gpus_by_name()
    return known.get(model.lower()) or known.get(canonical(model).lower())


@cache
def gpus_by_name() -> dict[str, Gpu]:
    found: dict[str, Gpu] = {}
    for gpu in gpus().values():
        for name in (canonical(gpu.nvml_name, memory_mib=gpu.memory_bytes // MIB), gpu.id, gpu.name, gpu.nvml_name):
            if name:
                found.setdefault(name.lower(), gpu)
    return found


def gpu_choices() -> list[str]:
    """Names of NVIDIA GPUs, as offers and machines have them."""
    names = {
        canonical(gpu.nvml_name, memory_mib=gpu.memory_bytes // MIB): None
        for gpu in gpus().values()
        if gpu.compute_capability
    }
    return [name for name in names if name]
