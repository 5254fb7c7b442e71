"""An environment of which only some versions are known, on a machine of which perhaps not even the driver is: what can be said, and what not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from planner.catalogue.gpus import Gpu
from planner.catalogue.software import Pair, Software, TorchWheel, minor_of
from planner.catalogue.software_tables import software
from planner.compatibility.checks import check_stack
from planner.compatibility.driver import driver_finding
from planner.compatibility.solver import EXTENSIONS, STANDALONE
from planner.compatibility.stacks import (
    Finding,
    Level,
    Machine,
    Needs,
    Stack,
    StackError,
    parse_minor,
    parse_version,
    worst_level,
)
from planner.reasons import Reason, reason

# "+cu128" of a build of torch. Anything else there is somebody's own build, about which no table says anything.
_TAG = re.compile(r"cu(\d{2,3})")
_CPU = "cpu"
# Steps whose findings depend on the driver.
_OF_DRIVER = frozenset({"driver", "ptx", "image"})
# Without these nothing can be said.
_DECISIVE = frozenset({"driver", "torch", "cuda"})
_UNCHECKED = "compatibility.release_unknown"


@dataclass(frozen=True, slots=True)
class Known:
    """An environment as it is known; "" = nobody says. `torch` with its build, as "2.9.1+cu128"; `cuda`: the toolkit beside it."""

    torch: str = ""
    cuda: str = ""
    python: str = ""
    frameworks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """`level` None: not known, because of `unknown`. A refusal is one whatever else is unknown.

    `unchecked`: parts beside GPU, driver and torch that no table says anything of; the level holds for the rest.
    """

    level: Level | None
    findings: tuple[Finding, ...]
    unknown: tuple[Reason, ...] = ()
    unchecked: tuple[Reason, ...] = ()


@dataclass
class Reading:
    """The parts of an environment that can be read, and what cannot."""

    tables: Software
    unknown: list[Reason] = field(default_factory=list)
    unchecked: list[Reason] = field(default_factory=list)
    torch: str | None = None
    tag: str | None = None
    wheel: TorchWheel | None = None
    cuda: Pair | None = None
    nvcc: str | None = None
    python: str | None = None
    frameworks: dict[str, str] = field(default_factory=dict)
    without_cuda: bool = False

    def parsed(self, what: str, text: str, parse: Callable[[str, str], Any]) -> Any:
        """None for what is no version, which is noted where somebody said it."""
        if not text:
            return None
        try:
            return parse(what, text)
        except StackError:
            told = self.unknown if what in _DECISIVE else self.unchecked
            told.append(reason("fit.unreadable", what=what, text=text[:60]))
            return None

    @property
    def stack(self) -> Stack:
        return Stack(
            torch=self.torch if self.wheel else None,
            cuda_tag=self.tag if self.wheel else None,
            frameworks=self.frameworks,
            python=self.python,
            nvcc=self.nvcc if self.wheel else None,
        )


def fit(gpu: Gpu | None, driver: str, known: Known, *, gpus: int = 1, tables: Software | None = None) -> Fit:
    """`gpu` None: not in the tables. `driver` "": not known. Texts may be anything: what is no version is unknown."""
    read = read_known(known, tables or software())
    version: Version | None = read.parsed("driver", driver, parse_version)
    if not driver:
        read.unknown.append(reason("fit.no_driver"))
    if read.without_cuda:
        found = reason("fit.cpu_build", torch=known.torch[:60])
        fix = reason("fit.fix.cuda_build")
        return Fit("refused", (Finding("kernels", "refused", found, symptom="torch-cpu-build", fix=fix),))
    findings = (*_on_gpu(gpu, driver if version else "", read, gpus=gpus), *_toolkit_alone(driver, version, read))
    kept = tuple(finding for finding in findings if finding.reason.key != _UNCHECKED)
    read.unchecked += [finding.reason for finding in findings if finding.reason.key == _UNCHECKED]
    worst = worst_level(kept)
    return Fit(
        worst if worst == "refused" or not read.unknown else None, kept, tuple(read.unknown), tuple(read.unchecked)
    )


def read_known(known: Known, tables: Software) -> Reading:
    read = Reading(tables)
    read.python = known.python if read.parsed("python", known.python, parse_minor) else None
    read.cuda = read.parsed("cuda", known.cuda, parse_minor)
    read.nvcc = known.cuda if read.cuda else None
    _read_torch(read, known.torch)
    for name, version in known.frameworks:
        if name in tables.releases and name != "pytorch" and read.parsed(name, version, parse_version):
            read.frameworks[name] = version
    alone = bool(read.frameworks) and STANDALONE.issuperset(read.frameworks)
    if not (read.wheel or read.without_cuda or alone or read.unknown):
        read.unknown.append(reason("fit.no_torch"))
    return read


def _read_torch(read: Reading, text: str) -> None:
    version: Version | None = read.parsed("torch", text, parse_version)
    if version is None:
        return
    read.torch, build = version.public, version.local
    read.without_cuda = build == _CPU
    read.tag = build if build and _TAG.fullmatch(build) else None
    if build is None or read.tag:
        read.wheel = read.tables.wheel(minor_of(version), read.tag)
    if read.wheel is None and not read.without_cuda:
        read.unknown.append(reason("fit.own_build", torch=text[:60]))
        read.cuda = read.cuda or cuda_of(text)


def cuda_of(torch: str) -> Pair | None:
    """The CUDA that a build of torch names in its version: "2.9.1+cu128" as (12, 8)."""
    tag = _TAG.fullmatch(torch.partition("+")[2])
    return (int(tag[1][:-1]), int(tag[1][-1])) if tag else None


def _on_gpu(gpu: Gpu | None, driver: str, read: Reading, *, gpus: int) -> tuple[Finding, ...]:
    """What check_stack says; without a driver, its findings that need none."""
    if gpu is None:
        read.unknown.append(reason("fit.no_gpu"))
        return ()
    if gpu.compute_capability is None:
        read.unknown.append(reason("compatibility.not_nvidia", gpu=gpu.name))
        return ()
    newest = str(max(branch.branch for branch in read.tables.branches))
    # As the solver takes it: torch alone brings compiled code, of the others nobody knows.
    needs = Needs(ptx=None if EXTENSIONS.intersection(read.frameworks) else False)
    findings = check_stack(Machine(gpu, driver or newest, gpus=gpus), read.stack, needs, tables=read.tables)
    return findings if driver else tuple(finding for finding in findings if finding.step not in _OF_DRIVER)


def _toolkit_alone(driver: str, version: Version | None, read: Reading) -> tuple[Finding, ...]:
    """Where no build of torch is known, its CUDA or the image's own against the driver."""
    if version is None or read.wheel or read.cuda is None:
        return ()
    floor = read.tables.floor(read.cuda)
    return () if floor is None else (driver_finding(read.tables, driver, version, read.cuda, floor),)
