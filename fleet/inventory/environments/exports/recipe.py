"""What can be installed again of an environment. Only names and versions that are such go in, so that no text of a machine reaches a shell.

Nothing here names the address of a package index: what has an index of its own asks for the address in a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from fleet.inventory.environments.versions import Versions
from planner.catalogue.software import Pair, TorchWheel, driver_text, minor_of, pair_text, parse_pair
from planner.catalogue.software_tables import software
from planner.compatibility.fit import cuda_of
from planner.compatibility.solver import Solution
from planner.compatibility.stacks import Stack

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
# Narrower than what packaging reads, which takes white space and letters of any case around a version.
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,58}")
_TAG = re.compile(r"cu\d{2,3}")
_MINOR = re.compile(r"\d{1,2}\.\d{1,2}")
# With open kernel modules in NVIDIA's packages; before it only with its own.
_FIRST_OPEN_BRANCH = 560


@dataclass(frozen=True, slots=True)
class Recipe:
    """`title` is one printable line. Everything else is "" or None where it is not known. `left_out`: names that cannot be written."""

    title: str
    image: str
    driver: str
    python: str
    cuda: Pair | None
    cudnn_major: int | None
    torch: str
    tag: str
    wheel: TorchWheel | None
    packages: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]

    @property
    def needs_index(self) -> bool:
        """Whether its torch comes from an index of its own; the default index gives one known build of each version."""
        return bool(self.torch and self.tag) and not (self.wheel and self.wheel.is_default)

    @property
    def torch_requirement(self) -> str:
        if not self.torch:
            return ""
        return f"torch=={self.torch}+{self.tag}" if self.needs_index else f"torch=={self.torch}"

    @property
    def solution(self) -> Solution:
        """As the planner's installers take it."""
        return Solution(Stack(self.torch or None, self.tag or None, dict(self.packages)), self.wheel, ())

    @property
    def driver_branch(self) -> int | None:
        """Of the known driver; without one, of the driver that came with the CUDA it needs."""
        if self.driver:
            return Version(self.driver).major
        needed = software().toolkit_driver(self.wheel.cuda if self.wheel else self.cuda or (0, 0))
        return needed.major if needed else None

    @property
    def driver_package(self) -> str:
        branch = self.driver_branch
        if branch is None:
            return ""
        return f"nvidia-open-{branch}" if branch >= _FIRST_OPEN_BRANCH else f"cuda-drivers-{branch}"

    @property
    def toolkit_package(self) -> str:
        """CUDA's compiler and libraries, without the driver that the package `cuda` would bring."""
        return f"cuda-toolkit-{self.cuda[0]}-{self.cuda[1]}" if self.cuda else ""

    @property
    def cudnn_package(self) -> str:
        if self.cudnn_major is None or self.cuda is None:
            return ""
        return f"libcudnn{self.cudnn_major}-dev-cuda-{self.cuda[0]}" if self.cudnn_major > 8 else "libcudnn8-dev"

    @property
    def needed_driver(self) -> str:
        return driver_text(self.wheel.floor) if self.wheel else ""


def recipe_of(versions: Versions, *, title: str, image: str = "") -> Recipe:
    left_out: list[str] = []
    torch = _version("torch", versions.value("torch"), left_out)
    tag = torch.local if torch and torch.local and _TAG.fullmatch(torch.local) else ""
    if torch and torch.local and not tag:
        # Somebody's own build: no index has it.
        left_out.append("torch")
        torch = None
    wheel = software().wheel(minor_of(torch), tag or None) if torch else None
    driver = _version("driver", versions.value("driver"), left_out)
    cudnn = _version("cudnn", versions.value("cudnn"), left_out)
    return Recipe(
        title=title,
        image=image,
        driver=driver_text(driver) if driver else "",
        python=_python(versions.value("python"), left_out),
        cuda=_cuda(versions, left_out) or (wheel.cuda if wheel else None),
        cudnn_major=cudnn.major if cudnn else None,
        torch=torch.public if torch else "",
        tag=tag,
        wheel=wheel,
        packages=tuple(_packages(versions, tag, left_out, is_default=bool(wheel and wheel.is_default))),
        left_out=tuple(left_out),
    )


def _version(name: str, text: str, left_out: list[str]) -> Version | None:
    if not text:
        return None
    try:
        if _VERSION.fullmatch(text) and text.isascii():
            return Version(text)
    except InvalidVersion:
        pass
    left_out.append(name)
    return None


def _python(text: str, left_out: list[str]) -> str:
    version = _version("python", text, left_out)
    short = f"{version.major}.{version.minor}" if version else ""
    return short if _MINOR.fullmatch(short) else ""


def _cuda(versions: Versions, left_out: list[str]) -> Pair | None:
    version = _version("cuda", versions.value("cuda"), left_out)
    if version is None:
        return cuda_of(versions.value("torch"))
    return parse_pair(f"{version.major}.{version.minor}")


def _packages(versions: Versions, tag: str, left_out: list[str], *, is_default: bool) -> Iterable[tuple[str, str]]:
    for line in versions.packages:
        if line.name == "torch":
            continue
        name = line.name if _NAME.fullmatch(line.name) else ""
        version = _version(name, line.value, left_out) if name else None
        if version is None:
            left_out += [] if name else ["?"]
        else:
            # A build of the same index as torch is asked for as such; other builds have indexes that nobody told us.
            yield name, str(version) if tag and version.local == tag and not is_default else version.public


def cuda_text(recipe: Recipe) -> str:
    return pair_text(recipe.cuda) if recipe.cuda else ""
