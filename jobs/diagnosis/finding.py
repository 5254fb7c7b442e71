"""What a rule found: what it is, why, how sure, what to do first, and the lines and readings that show it. Pure; words are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Value = float | int | str


class Sure(StrEnum):
    """CERTAIN: the run says it itself. LIKELY: readings agree and nothing speaks against it. POSSIBLE: worth a look."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remedy:
    """`saves_bytes`: of one GPU, as the planner reckons; None = not known."""

    code: str
    values: Mapping[str, Value] = field(default_factory=dict)
    saves_bytes: float | None = None


def remedies(*codes: str) -> tuple[Remedy, ...]:
    """In this order, without figures."""
    return tuple(Remedy(code) for code in codes)


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedies`: the first is what to do first. `lines`: numbers of the log's lines. `gpus`: indexes of those it is about, () = all or none."""

    code: str
    sure: Sure
    because: tuple[Reason, ...]
    remedies: tuple[Remedy, ...]
    lines: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    since: float | None = None
