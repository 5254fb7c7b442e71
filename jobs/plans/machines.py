"""Which of a team's machines a plan fits on, and why the others do not: as far as it is known before anybody looks at them over SSH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from packaging.version import InvalidVersion, Version

from fleet.formats import bytes_text
from fleet.inventory.environments.verdicts import gpu_named
from fleet.inventory.environments.versions import text_of
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import EnvironmentReport, Instance

MIB = 1024**2


@dataclass(frozen=True, slots=True)
class MachineFit:
    """`problems`: why the plan does not fit on it; `remarks`: what else is worth knowing. `is_held`: by a job or a person."""

    machine: Instance
    problems: tuple[str | Promise, ...] = ()
    remarks: tuple[str | Promise, ...] = ()
    is_held: bool = False


def fits_of(machines: Sequence[Instance], predicted: Mapping[str, Any], *, now: datetime) -> list[MachineFit]:
    """In the order given. `predicted`: Job.predicted; {} without a plan: only who holds it is said."""
    held = set(holds_in_force(now=now).filter(instance__in=machines).values_list("instance_id", flat=True))
    drivers = drivers_of(machines)
    return [
        MachineFit(
            machine=machine,
            problems=tuple(problems_of(machine, drivers.get(machine.pk, ""), predicted))
            if predicted.get("gpu")
            else (),
            remarks=tuple(_remarks(machine, predicted, is_held=machine.pk in held)),
            is_held=machine.pk in held,
        )
        for machine in machines
    ]


def drivers_of(machines: Sequence[Instance]) -> dict[int, str]:
    """As the newest report of each agent has it."""
    newest = EnvironmentReport.objects.filter(instance__in=machines).order_by("instance", "-reported_at")
    rows = newest.distinct("instance").values_list("instance_id", "data")
    return {pk: text_of(data.get("driver")) for pk, data in rows if isinstance(data, dict)}


def problems_of(machine: Instance, driver: str, predicted: Mapping[str, Any]) -> Iterator[str | Promise]:
    wanted, count = int(predicted.get("gpus_per_machine") or 1), machine.gpu_count
    if count is not None and count < wanted:
        yield _("too few GPUs: %(found)d, the plan takes %(wanted)d") % {"found": count, "wanted": wanted}
    gpu, needed = gpu_named(machine.gpu_model), predicted.get("memory_bytes")
    memory = machine.gpu_memory_mib * MIB if machine.gpu_memory_mib else gpu.memory_bytes if gpu else None
    if needed and memory is not None and memory < needed:
        said = {"found": bytes_text(memory), "needed": bytes_text(needed)}
        yield _("its GPUs have %(found)s, the plan needs %(needed)s") % said
    oldest = (predicted.get("software") or {}).get("oldest_driver")
    if oldest and driver and _is_older(driver, oldest):
        yield _("its driver %(driver)s is older than %(oldest)s") % {"driver": driver, "oldest": oldest}


def _remarks(machine: Instance, predicted: Mapping[str, Any], *, is_held: bool) -> Iterator[str | Promise]:
    if predicted.get("gpu"):
        gpu = gpu_named(machine.gpu_model)
        if not machine.gpu_model:
            yield _("nobody knows its GPUs")
        elif gpu is None or gpu.id != predicted["gpu"]:
            yield _("planned for %(gpu)s") % {"gpu": predicted.get("gpu_name", "")}
    if is_held:
        yield _("held already")


def _is_older(driver: str, oldest: str) -> bool:
    try:
        return Version(driver) < Version(oldest)
    except InvalidVersion:
        return False


def chosen_of(fits: Sequence[MachineFit], count: int) -> list[Instance]:
    """The machines that a form begins with: those that are free and fit, the planned GPU first; none where there are too few."""
    good = [fit for fit in fits if not fit.problems and not fit.is_held]
    first = sorted(good, key=lambda fit: len(fit.remarks))[:count]
    return [fit.machine for fit in first] if len(first) == count else []
