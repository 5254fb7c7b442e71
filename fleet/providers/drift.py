"""Is a machine what was rented? What its agent reports of its GPUs against what its provider listed. Pure: no Django, no clock.

Only what both sides name without doubt is compared. A part of a GPU (MIG) says nothing of the whole card; drivers report up to a
tenth less memory than a card is sold with (reserved for ECC and themselves), so that only a clear lack counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fleet.providers.gpus import NAMES, canonical

ENOUGH_MEMORY = 0.85
MIB = 1 << 20


class Drift(StrEnum):
    MODEL = "model"
    MEMORY = "memory"
    MORE = "more"  # fewer is an alert of its own


@dataclass(frozen=True, slots=True)
class Rented:
    """As the provider lists it: None and "" where it does not say."""

    gpu_model: str
    gpu_count: int | None
    gpu_memory_mib: int | None


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU as the driver names it."""

    name: str
    memory_bytes: int | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """`found` and `rented`: a model, GiB of one GPU, or a count."""

    kind: Drift
    found: str
    rented: str


def differences(rented: Rented, cards: Iterable[Card]) -> tuple[Difference, ...]:
    """() where everything fits, or where nothing can be compared."""
    whole = [card for card in cards if not card.is_part and card.name]
    if not whole:
        return ()
    return tuple(one for one in (_model(rented, whole), _memory(rented, whole), _more(rented, whole)) if one)


def _model(rented: Rented, cards: list[Card]) -> Difference | None:
    wanted = canonical(rented.gpu_model, memory_mib=rented.gpu_memory_mib)
    others = [name for card in cards if (name := _name(card)) in NAMES and name != wanted]
    if wanted not in NAMES or not others:
        return None
    return Difference(Drift.MODEL, Counter(others).most_common(1)[0][0], wanted)


def _name(card: Card) -> str:
    return canonical(card.name, memory_mib=card.memory_bytes // MIB if card.memory_bytes else None)


def _memory(rented: Rented, cards: list[Card]) -> Difference | None:
    least = min((card.memory_bytes for card in cards if card.memory_bytes), default=None)
    if least is None or not rented.gpu_memory_mib or least >= ENOUGH_MEMORY * rented.gpu_memory_mib * MIB:
        return None
    return Difference(Drift.MEMORY, f"{least / 2**30:.0f}", f"{rented.gpu_memory_mib / 1024:.0f}")


def _more(rented: Rented, cards: list[Card]) -> Difference | None:
    if not rented.gpu_count or len(cards) <= rented.gpu_count:
        return None
    return Difference(Drift.MORE, str(len(cards)), str(rented.gpu_count))
