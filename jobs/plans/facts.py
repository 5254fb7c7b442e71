"""What a machine says of itself as a job is prepared on it. Pure; it may say anything, so that everything is read into bounded, plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_GPUS, MOST_PACKAGES, LONGEST = 64, 60, 100
KIB, MIB = 1024, 1024**2
_NUMBER = re.compile(r"\d{1,15}")
# What nvidia-smi says on the card's memory where it has no own.
_PACKAGE = re.compile(r"package\.([a-z0-9][a-z0-9._-]{0,60})")


@dataclass(frozen=True, slots=True)
class CardFacts:
    name: str
    memory_bytes: int | None
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """None and "": it did not say. `torch_cuda`: what torch was built for, "none" for a CPU build. `gpus` None: no driver answered."""

    system: str = ""
    python: str = ""
    driver: str = ""
    nvcc: str = ""
    torch: str = ""
    torch_cuda: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[CardFacts, ...] | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    disk_free_bytes: int | None = None
    shared_memory_bytes: int | None = None

    def values(self) -> dict[str, Any]:
        """JSON-ready, as Node.facts keeps it."""
        return asdict(self)


def read_facts(answer: Mapping[str, str]) -> MachineFacts:
    """`answer`: the lines of the script's `facts`."""
    cards = tuple(_cards(answer))
    packages = dict(list(_packages(answer))[:MOST_PACKAGES])
    return MachineFacts(
        system=_text(answer.get("system")),
        python=_text(answer.get("python")),
        driver=_text(answer.get("driver")),
        nvcc=_text(answer.get("nvcc")),
        torch=packages.pop("torch", ""),
        torch_cuda=_text(answer.get("torch_cuda")),
        packages=packages,
        gpus=cards or None,
        cpus=_number(answer.get("cpus")),
        memory_bytes=_memory(answer),
        memory_available_bytes=_number(answer.get("memory_available_kib"), KIB),
        disk_free_bytes=_number(answer.get("disk_free_kib"), KIB),
        shared_memory_bytes=_number(answer.get("shared_memory_kib"), KIB),
    )


def _memory(answer: Mapping[str, str]) -> int | None:
    """Of a container no more than it is given."""
    whole, limit = _number(answer.get("memory_kib"), KIB), _number(answer.get("memory_limit"))
    return min(whole, limit) if whole and limit else whole


def _cards(answer: Mapping[str, str]) -> Iterator[CardFacts]:
    for number in range(1, MOST_GPUS + 1):
        parts = [part.strip() for part in answer.get(f"gpu{number}", "").split(",")]
        if len(parts) == 3 and parts[0]:
            yield CardFacts(_text(parts[0]), _number(parts[1], MIB), _number(parts[2], MIB))


def _packages(answer: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, version in answer.items():
        if (match := _PACKAGE.fullmatch(name)) and (text := _text(version)):
            yield match[1], text


def _text(said: str | None) -> str:
    return "".join(mark for mark in (said or "")[:LONGEST] if mark.isprintable()).strip()


def _number(said: str | None, unit: int = 1) -> int | None:
    return int(said.strip()) * unit if said is not None and _NUMBER.fullmatch(said.strip()) else None
