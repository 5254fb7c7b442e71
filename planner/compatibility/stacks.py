"""What a machine is and what is to be installed on it, as the checks see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from packaging.version import InvalidVersion, Version

from planner.catalogue.gpus import Gpu
from planner.catalogue.software import Architecture, Pair, Release, Software, TorchWheel, parse_pair
from planner.reasons import Reason
from planner.runs import DType, WeightFormat

# full: the driver is at least as new as the CUDA release; minor: another minor of the same CUDA, which runs compiled code; ptx-risk: as
# minor, and some package may bring code that only the driver can compile; refused: it ends in the error of the finding.
Level = Literal["full", "minor", "ptx-risk", "refused"]
LEVELS: tuple[Level, ...] = ("full", "minor", "ptx-risk", "refused")

Step = Literal["driver", "kernels", "ptx", "frameworks", "cudnn", "python", "dtype", "toolkit", "image", "several-gpus"]


class StackError(ValueError):
    """A version that cannot be read; `field` names the input."""

    def __init__(self, field_name: str, text: str) -> None:
        super().__init__(f"{field_name}: {text!r} is no version like 550.54.15 or 12.8")
        self.field = field_name


def parse_version(field_name: str, text: str) -> Version:
    """Raises StackError."""
    try:
        return Version(text)
    except InvalidVersion:
        raise StackError(field_name, text) from None


def parse_minor(field_name: str, text: str) -> Pair:
    """3.11 or 3.11.7 as (3, 11). Raises StackError."""
    try:
        return parse_pair(".".join(text.split(".")[:2]))
    except ValueError:
        raise StackError(field_name, text) from None


@dataclass(frozen=True, slots=True)
class Machine:
    """`shared_memory_bytes` is the size of /dev/shm; None stands for what nobody looked at."""

    gpu: Gpu
    driver: str
    gpus: int = 1
    shared_memory_bytes: int | None = None
    fabric_manager_runs: bool | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """`cuda_tag` None: torch's build on the default index. `frameworks`: name -> version. `nvcc`, `system_*`: what the image brings."""

    torch: str | None
    cuda_tag: str | None = None
    frameworks: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    nvcc: str | None = None
    system_cudnn: str | None = None
    system_nccl: str | None = None
    image_cuda: str | None = None
    image_has_compat_libraries: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """What the run asks of the stack. `ptx`: whether a package lets the driver compile PTX; None: not known."""

    dtype: DType | None = None
    weight_format: WeightFormat | None = None
    flash_attention: bool = False
    ptx: bool | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """`symptom`: the row of symptoms.csv that people would meet instead of this finding."""

    step: Step
    level: Level
    reason: Reason
    symptom: str | None = None
    fix: Reason | None = None


def worst_level(findings: Sequence[Finding]) -> Level:
    return max((finding.level for finding in findings), key=LEVELS.index, default="full")


@dataclass(frozen=True, slots=True)
class Case:
    """A stack on a machine with every name looked up. `wheel` is None only where the stack has no torch."""

    machine: Machine
    stack: Stack
    needs: Needs
    tables: Software
    capability: Pair
    architecture: Architecture
    driver: Version
    torch: Version | None
    wheel: TorchWheel | None

    @property
    def releases(self) -> list[Release]:
        """The frameworks' releases that the tables know."""
        found = [self.tables.release(name, version) for name, version in self.stack.frameworks.items()]
        return [release for release in found if release]


Check = Callable[[Case], Iterator[Finding]]
