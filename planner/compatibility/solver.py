"""The newest stack that works: torch, its build, and the frameworks beside it, for a GPU and a driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from packaging.version import Version

from planner.catalogue.software import Pair, Release, Software, TorchWheel, minor_of
from planner.catalogue.software_tables import software, torch_versions
from planner.compatibility.checks import check_stack
from planner.compatibility.stacks import Finding, Level, Machine, Needs, Stack, parse_minor, worst_level

# Bring compiled code of their own, which may hold PTX that the driver has to compile; the others run on torch's kernels.
EXTENSIONS = frozenset({"vllm", "tensorrt-llm", "flash-attn", "flash-attn-3", "bitsandbytes", "transformer-engine"})
# Bring their own CUDA instead of torch's.
STANDALONE = frozenset({"paddlepaddle-gpu", "tensorflow"})
# Work, but with hours of compiling, or as a pair that nobody publishes.
AVOIDED = ("compatibility.source_build", "compatibility.cuda_pair_unpublished")


@dataclass(frozen=True, slots=True)
class Solution:
    """`wheel` is None for frameworks that bring their own CUDA."""

    stack: Stack
    wheel: TorchWheel | None
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        return worst_level(self.findings)

    @property
    def drawbacks(self) -> int:
        """Full and minor are alike: both run compiled code. A risk with PTX weighs more than any number of what is avoided."""
        avoided = sum(finding.reason.key in AVOIDED for finding in self.findings)
        return avoided + (100 if self.level == "ptx-risk" else 0)


@dataclass(frozen=True, slots=True)
class _Candidate:
    torch: Version | None
    wheel: TorchWheel | None
    releases: tuple[Release, ...]

    @property
    def newness(self) -> tuple[object, ...]:
        """The frameworks in the order in which they were asked for, then torch; among builds of one torch the default one, then stable ones."""
        versions = tuple(release.version for release in self.releases)
        if self.wheel is None:
            return versions
        return (*versions, self.torch, self.wheel.is_default, self.wheel.stable, self.wheel.cuda)

    def stack(self, python: str | None) -> Stack:
        return Stack(
            torch=str(self.torch) if self.torch else None,
            cuda_tag=self.wheel.tag if self.wheel else None,
            frameworks={release.framework: str(release.version) for release in self.releases},
            python=python,
        )


def solve_stack(
    machine: Machine,
    frameworks: Sequence[str] = (),
    needs: Needs | None = None,
    *,
    python: str | None = None,
    tables: Software | None = None,
) -> Solution | None:
    """The newest that is not refused; one without drawbacks before a newer one with them. None: nothing works on this driver.

    `frameworks` by their names in frameworks.csv, the most wanted first. Raises StackError, and KeyError for an unknown framework.
    """
    tables = tables or software()
    if machine.gpu.compute_capability is None:
        return None
    needs = needs or Needs()
    if needs.ptx is None and not EXTENSIONS.intersection(frameworks):
        needs = replace(needs, ptx=False)
    best: Solution | None = None
    for candidate in sorted(
        _candidates(machine, frameworks, python, tables), key=lambda each: each.newness, reverse=True
    ):
        stack = candidate.stack(python)
        solution = Solution(stack, candidate.wheel, check_stack(machine, stack, needs, tables=tables))
        if solution.level == "refused":
            continue
        if not solution.drawbacks:
            return solution
        if best is None or solution.drawbacks < best.drawbacks:
            best = solution
    return best


def _candidates(
    machine: Machine, frameworks: Sequence[str], python: str | None, tables: Software
) -> Iterator[_Candidate]:
    version = parse_minor("python", python) if python else None
    capability = machine.gpu.compute_capability
    lists = [[each for each in _finished(tables, name) if _suits(each, capability, version)] for name in frameworks]
    if frameworks and STANDALONE.issuperset(frameworks):
        yield from (_Candidate(None, None, releases) for releases in product(*lists))
        return
    for torch, wheel in product(torch_versions(tables), tables.wheels):
        if wheel.torch == minor_of(torch):
            beside = [[each for each in releases if _stands_beside(each, torch, wheel)] for releases in lists]
            yield from (_Candidate(torch, wheel, releases) for releases in product(*beside))


def _finished(tables: Software, framework: str) -> list[Release]:
    """Without release candidates and betas, unless there is nothing else."""
    releases = tables.releases[framework]
    return [each for each in releases if not each.version.is_prerelease] or list(releases)


def _suits(release: Release, capability: Pair | None, python: Pair | None) -> bool:
    if capability is None or capability < (release.capability_min or capability):
        return False
    return python is None or (release.python_min or python) <= python <= (release.python_max or python)


def _stands_beside(release: Release, torch: Version, wheel: TorchWheel) -> bool:
    if not release.torch.contains(torch, prereleases=True):
        return False
    same_major = not release.cuda_builds or any(cuda[0] == wheel.cuda[0] for cuda in release.cuda_builds)
    return same_major and (release.cuda_min or wheel.cuda) <= wheel.cuda <= (release.cuda_max or wheel.cuda)
