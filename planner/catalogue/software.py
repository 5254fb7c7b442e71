"""Drivers, CUDA, cuDNN, wheels and frameworks as typed rows; planner.catalogue.software_tables reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

# (major, minor) of a CUDA release or of a compute capability.
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A CUDA release: `driver` is the one that ships with it, `floor` the oldest that runs its major release (None before CUDA 11)."""

    cuda: Pair
    update: int
    driver: Version | None
    floor: Version | None


@dataclass(frozen=True, slots=True)
class DriverBranch:
    """A driver branch and the newest CUDA that it knows."""

    branch: int
    cuda: Pair


@dataclass(frozen=True, slots=True)
class Architecture:
    """What NVIDIA supports for a compute capability; None where support has not ended."""

    capability: Pair
    name: str
    first_cuda: Pair
    last_cuda: Pair | None
    first_branch: int
    last_branch: int | None
    bf16: bool
    fp8: bool
    fp4: bool


@dataclass(frozen=True, slots=True)
class Cudnn:
    """A cuDNN release for one CUDA major, with the capabilities it has kernels for."""

    version: Version
    cuda_major: int
    driver: Version
    lowest: Pair
    highest: Pair


@dataclass(frozen=True, slots=True)
class Kernels:
    """The compute capabilities of a package: compiled code (cubins), and PTX that the driver can compile for newer parts."""

    cubins: tuple[Pair, ...]
    ptx: tuple[Pair, ...]

    def compiled_for(self, capability: Pair) -> bool:
        """Compiled code for X.y runs on X.z with z >= y, never on another major."""
        return any(major == capability[0] and minor <= capability[1] for major, minor in self.cubins)

    def compilable_for(self, capability: Pair) -> bool:
        """The driver can compile PTX for any part at least as new as the one it was written for."""
        return any(part <= capability for part in self.ptx)


@dataclass(frozen=True, slots=True)
class TorchWheel:
    """A build of torch `torch` (major, minor) for one CUDA; `tag` names its index ("cu126")."""

    torch: Pair
    tag: str
    cuda: Pair
    is_default: bool
    stable: bool
    python_min: Pair
    python_max: Pair
    cudnn: Version
    nccl: Version | None
    kernels: Kernels
    floor: Version


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a framework. `torch` is the range of torch versions it allows; empty bounds are not known or not there."""

    framework: str
    version: Version
    python_min: Pair | None
    python_max: Pair | None
    cuda_builds: tuple[Pair, ...]
    cuda_min: Pair | None
    cuda_max: Pair | None
    torch: SpecifierSet
    # Torch releases that a compiled wheel exists for; empty where the framework has no such limit.
    prebuilt_torch: tuple[Pair, ...]
    capability_min: Pair | None
    driver_min: Version | None
    cudnn_major: int | None
    needs: str
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class Software:
    """All tables; releases and wheels newest first."""

    toolkits: tuple[Toolkit, ...]
    branches: tuple[DriverBranch, ...]
    architectures: Mapping[Pair, Architecture]
    cudnn: tuple[Cudnn, ...]
    wheels: tuple[TorchWheel, ...]
    releases: Mapping[str, tuple[Release, ...]]

    def wheel(self, torch: Pair, tag: str | None) -> TorchWheel | None:
        """The build of that tag; None means the one that the default index gives."""
        for wheel in self.wheels:
            if wheel.torch == torch and (wheel.is_default if tag is None else wheel.tag == tag):
                return wheel
        return None

    def release(self, framework: str, version: str) -> Release | None:
        wanted = Version(version)
        return next((each for each in self.releases.get(framework, ()) if each.version == wanted), None)

    def toolkit_driver(self, cuda: Pair) -> Version | None:
        """The oldest driver that knows all of this CUDA release: a new PTX version comes with the minor release, not its updates."""
        known = [each.driver for each in self.toolkits if each.cuda == cuda and each.driver]
        return min(known, default=None)

    def floor(self, cuda: Pair) -> Version | None:
        """The oldest driver that runs code of this CUDA at all."""
        return next((each.floor or each.driver for each in self.toolkits if each.cuda == cuda), None)

    def branch(self, driver: Version) -> DriverBranch | None:
        """The newest listed branch that is not newer than `driver`."""
        return max(
            (each for each in self.branches if each.branch <= driver.major), key=lambda each: each.branch, default=None
        )


def parse_pair(cell: str) -> Pair:
    """12.8 as (12, 8). Raises ValueError."""
    major, dot, minor = cell.partition(".")
    if not (major.isdecimal() and (minor.isdecimal() if dot else not minor)):
        raise ValueError(cell)
    return int(major), int(minor or 0)


def minor_of(version: Version) -> Pair:
    return version.major, version.minor


def pair_text(pair: Pair) -> str:
    return f"{pair[0]}.{pair[1]}"


def driver_text(driver: Version) -> str:
    """As NVIDIA prints it: 580.65.06, not 580.65.6."""
    parts = [str(driver.release[0]), *(f"{number:02}" for number in driver.release[1:])]
    return ".".join(parts)
