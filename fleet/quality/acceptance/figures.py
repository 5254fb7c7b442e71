"""What an acceptance test is about: what was promised, what such a machine should reach, and one line of the outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Result(StrEnum):
    OK = "ok"
    SHORT = "short"
    WRONG = "wrong"  # not what was rented at all
    UNKNOWN = "unknown"  # not measured, or nothing to hold it against


class Source(StrEnum):
    """Whose word the figure is that a measurement is held against."""

    PROVIDER = "provider"
    CARD = "card"  # the maker's data, planner/data/gpus.csv
    LINK = "link"  # what PCI Express of that generation and width can carry
    EQUALS = "equals"  # the machine's other cards
    PEERS = "peers"  # the team's other machines of the same kind
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """As the provider lists the machine; None and "" where it does not say."""

    gpu_model: str = ""
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    vcpus: int | None = None
    ram_mib: int | None = None
    disk_gb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What such cards reach by their maker's data; `peers`: medians of other machines of the kind, by name of the check."""

    pcie_generation: int | None = None
    pcie_width: int | None = None
    # FLOP/s by type of number, dense.
    matrix_flops_per_second: Mapping[str, float] = field(default_factory=dict)
    peers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`promised` and `measured`: a number in `unit`, a model's name, or None where it is not known."""

    name: str
    promised: float | str | None
    measured: float | str | None
    unit: str
    result: Result
    source: Source = Source.NONE

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "promised": self.promised,
            "measured": self.measured,
            "unit": self.unit,
            "result": self.result.value,
            "source": self.source.value,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdict`: pass, short, not_as_rented or unclear."""

    verdict: str
    checks: tuple[Check, ...]
