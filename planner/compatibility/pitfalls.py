"""What people will meet with an environment, and where: the checks run over every GPU of the tables, and over the drivers that matter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.catalogue.gpus import gpus
from planner.catalogue.software import Software, driver_text, pair_text
from planner.catalogue.software_tables import software
from planner.catalogue.symptoms import Symptom, symptoms
from planner.compatibility.checks import check_stack
from planner.compatibility.fit import Known, Reading, fit, read_known
from planner.compatibility.machine import SMALL_SHARED_MEMORY_BYTES
from planner.compatibility.solver import EXTENSIONS
from planner.compatibility.stacks import Finding, Machine
from planner.reasons import Reason, reason

# Enough cards that what concerns several of them is said.
_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Pitfall:
    """`symptom`: the message in which it ends. `gpus`: names of those that it concerns; () = whatever the GPU."""

    symptom: Symptom
    why: Reason
    fix: Reason | None
    gpus: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def pitfalls(known: Known, *, in_container: bool = True) -> tuple[Pitfall, ...]:
    """Those of drivers first, then those of GPUs, most GPUs first. Empty where nothing of it is in the tables."""
    tables = software()
    read = read_known(known, tables)
    if read.without_cuda:
        finding = fit(None, "", known).findings[0]
        return (_pitfall(finding),)
    if not (read.wheel or read.frameworks):
        return ()
    return (*_of_drivers(read, tables), *_of_gpus(read, tables), *_of_containers(in_container))


def _of_drivers(read: Reading, tables: Software) -> tuple[Pitfall, ...]:
    if read.wheel is None:
        return ()
    cuda, needed = pair_text(read.wheel.cuda), tables.toolkit_driver(read.wheel.cuda)
    floor = driver_text(read.wheel.floor)
    fix = reason("compatibility.fix.newer_driver", driver=floor)
    old = Pitfall(symptoms()["driver-too-old-torch"], reason("fit.driver_floor", cuda=cuda, floor=floor), fix)
    if needed is None or not EXTENSIONS.intersection(read.frameworks):
        return (old,)
    newer = driver_text(needed)
    why = reason("fit.driver_ptx", cuda=cuda, floor=floor, needed=newer)
    fix = reason("compatibility.fix.newer_driver", driver=newer)
    return (old, Pitfall(symptoms()["ptx-unsupported-toolchain"], why, fix))


def _of_gpus(read: Reading, tables: Software) -> tuple[Pitfall, ...]:
    """On a driver that is new enough for each of them, so that only the GPU decides."""
    newest = max(branch.branch for branch in tables.branches)
    met: dict[str, tuple[Finding, list[str]]] = {}
    for gpu in gpus().values():
        if gpu.compute_capability is None:
            continue
        branch = min(newest, tables.architectures[gpu.compute_capability].last_branch or newest)
        for finding in check_stack(Machine(gpu, str(branch), gpus=_SEVERAL), read.stack, tables=tables):
            if finding.symptom and finding.step not in {"driver", "ptx"}:
                names = met.setdefault(finding.symptom, (finding, []))[1]
                names += [gpu.name] if gpu.name not in names else []
    found = [_pitfall(finding, tuple(names)) for finding, names in met.values()]
    return tuple(sorted(found, key=lambda each: -len(each.gpus)))


def _of_containers(in_container: bool) -> tuple[Pitfall, ...]:
    if not in_container:
        return ()
    why = reason("compatibility.shared_memory", mebibytes=SMALL_SHARED_MEMORY_BYTES // 2**20)
    return (Pitfall(symptoms()["nccl-shm"], why, reason("compatibility.fix.shared_memory")),)


def _pitfall(finding: Finding, names: tuple[str, ...] = ()) -> Pitfall:
    assert finding.symptom
    return Pitfall(symptoms()[finding.symptom], finding.reason, finding.fix, names)
