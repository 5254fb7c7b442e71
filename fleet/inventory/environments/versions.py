"""The versions of an environment out of several mouths. Pure: who said what and when comes in, and which of it counts goes out.

What agents report is hostile: it is text to be shown, cut and escaped by whoever shows it, and no version until something has parsed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from planner.catalogue.software import pair_text
from planner.compatibility.fit import Known, cuda_of

# In the order in which they count. `build`: what a build of torch says of its CUDA in its own version.
Kind = Literal["typed", "reported", "carried", "build"]
SINGLE = ("driver", "cuda", "cudnn", "nccl", "python")
LEADING = frozenset({"torch", "tensorflow", "jax", "paddlepaddle-gpu", "vllm", "tensorrt-llm"})
MAX_PACKAGES = 64
MAX_CHARS = 60
# As agents write it for a machine that is no container.
NO_CONTAINER = "none"
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class Source:
    """One mouth. `who`: a person, or the machine that an agent reported of. `data` in the keys of an agent's report."""

    kind: Kind
    at: datetime | None
    who: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    value: str
    kind: Kind
    at: datetime | None
    who: str


@dataclass(frozen=True, slots=True)
class Line:
    """One part of an environment and all that was said of it; the first counts."""

    name: str
    said: tuple[Said, ...]
    is_package: bool = False

    @property
    def value(self) -> str:
        return self.said[0].value

    @property
    def is_disputed(self) -> bool:
        return any(said.value != self.value for said in self.said)


@dataclass(frozen=True, slots=True)
class Versions:
    """`is_container` None: nobody said whether the driver is the image's own or its host's."""

    lines: tuple[Line, ...] = ()
    is_container: bool | None = None

    def line(self, name: str) -> Line | None:
        return next((line for line in self.lines if line.name == name), None)

    def value(self, name: str) -> str:
        line = self.line(name)
        return line.value if line else ""

    @property
    def packages(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.is_package)

    @property
    def headline(self) -> tuple[Line, ...]:
        """What tells environments apart in a list."""
        return tuple(line for line in self.lines if not line.is_package or line.name in LEADING)

    @property
    def own_driver(self) -> str:
        """The driver that comes with the image: typed for it, or seen on a machine that is no container. A container has its host's."""
        line = self.line("driver")
        if line is None or (line.said[0].kind != "typed" and self.is_container is not False):
            return ""
        return line.value

    @property
    def toolkit(self) -> str:
        """The CUDA that is installed beside torch; "" where only torch's own is known."""
        line = self.line("cuda")
        return line.value if line and line.said[0].kind != "build" else ""

    @property
    def known(self) -> Known:
        others = tuple((line.name, line.value) for line in self.packages if line.name != "torch")
        return Known(self.value("torch"), self.toolkit, self.value("python"), others)


def collect(sources: Sequence[Source]) -> Versions:
    """`sources` in the order in which they count."""
    lines = [line for name in SINGLE if (line := line_of(name, sources))]
    lines += sorted(package_lines(sources), key=lambda line: (line.name != "torch", line.name))
    return Versions(tuple(lines), in_container(sources))


def line_of(name: str, sources: Sequence[Source]) -> Line | None:
    said = [Said(text, each.kind, each.at, each.who) for each in sources if (text := text_of(each.data.get(name)))]
    if name == "cuda":
        said += cuda_of_builds(sources)
    return Line(name, tuple(said)) if said else None


def cuda_of_builds(sources: Iterable[Source]) -> Iterator[Said]:
    for source in sources:
        torch = packages_of(source).get("torch", "")
        if pair := cuda_of(torch):
            yield Said(pair_text(pair), "build", source.at, f"torch {torch}")


def package_lines(sources: Sequence[Source]) -> Iterator[Line]:
    found: dict[str, list[Said]] = {}
    for source in sources:
        for name, version in packages_of(source).items():
            found.setdefault(name, []).append(Said(version, source.kind, source.at, source.who))
    for name, said in list(found.items())[:MAX_PACKAGES]:
        yield Line(name, tuple(said), is_package=True)


def packages_of(source: Source) -> dict[str, str]:
    given = source.data.get("frameworks")
    if not isinstance(given, Mapping):
        return {}
    pairs = ((package_name(str(name)), text_of(version)) for name, version in given.items())
    return {name: version for name, version in pairs if name and version}


def package_name(name: str) -> str:
    """As package indexes compare names: agents read `flash_attn` where the tables say `flash-attn`."""
    return _SEPARATORS.sub("-", name.strip()).lower()[:MAX_CHARS]


def text_of(value: Any) -> str:
    return value.strip()[:MAX_CHARS] if isinstance(value, str) else ""


def in_container(sources: Iterable[Source]) -> bool | None:
    words = (text_of(source.data.get("container")) for source in sources)
    known = next((word for word in words if word and word != "unknown"), "")
    return known != NO_CONTAINER if known else None


def as_data(versions: Versions) -> dict[str, Any]:
    """What counts, in the keys of an agent's report: to be carried along with an image."""
    data: dict[str, Any] = {name: versions.value(name) for name in SINGLE if versions.value(name)}
    if versions.toolkit != data.get("cuda", ""):
        del data["cuda"]
    if packages := {line.name: line.value for line in versions.packages}:
        data["frameworks"] = packages
    if versions.is_container is not None:
        data["container"] = "container" if versions.is_container else NO_CONTAINER
    return data
