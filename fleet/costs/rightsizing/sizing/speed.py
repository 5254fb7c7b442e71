"""How fast one GPU is beside another: the rates that the planner reckons with, by our names of GPU models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from fleet.inventory.offers.models_asked import our_name
from fleet.providers.gpus import NAMES, canonical
from planner.catalogue.gpus import MIB, Gpu, gpus
from planner.speed.cards import NoRateError, card

FORM = re.compile(r"\b(SXM|PCIe|NVL)\b")


@cache
def known_gpus() -> Mapping[str, Gpu]:
    """Our name -> the card of the planner's catalogue."""
    named = ((_our_name(gpu), gpu) for gpu in gpus().values())
    return {name: gpu for name, gpu in named if name is not None and name in NAMES}


def _our_name(gpu: Gpu) -> str | None:
    """Only NVIDIA's cards have a name of NVML."""
    return canonical(gpu.nvml_name, memory_mib=gpu.memory_bytes // MIB) if gpu.nvml_name else our_name(gpu.name)


def relative_speed(model: str, other: str) -> float | None:
    """`other`'s speed as a part of `model`'s: the worse of arithmetic and memory bandwidth, as nobody knows which of them a work waits for.

    None where the catalogue does not know both, or `other` lacks the 16-bit type that `model` has.
    """
    if model == other:
        return 1.0
    mine, its = known_gpus().get(model), known_gpus().get(other)
    if mine is None or its is None or (mine.bf16 and not its.bf16):
        return None
    try:
        before, after = card(mine, "bf16"), card(its, "bf16")
    except NoRateError:
        return None
    return min(after.matrix / before.matrix, after.memory / before.memory)


def is_other_form(model: str, other: str) -> bool:
    """H100 SXM and H100 PCIe are two products under one name: prices of one say nothing of the other."""
    return model != other and _family(model) == _family(other) and _form(model) != _form(other)


def _family(model: str) -> str:
    return model.split(" ", maxsplit=1)[0]


def _form(model: str) -> str:
    found = FORM.search(model)
    return found[1] if found else ""


def is_linked(model: str) -> bool:
    """Whether the GPUs of a machine reach each other all through NVSwitch."""
    gpu = known_gpus().get(model)
    return gpu is not None and gpu.interconnect == "NVSwitch"


def lacks_fp8(model: str, other: str) -> bool:
    mine, its = known_gpus().get(model), known_gpus().get(other)
    return bool(mine and its and mine.fp8 and not its.fp8)


def is_other_vendor(model: str, other: str) -> bool:
    mine, its = known_gpus().get(model), known_gpus().get(other)
    return bool(mine and its and mine.vendor != its.vendor)


@cache
def smallest_card_gib(need_bytes: int) -> int | None:
    """What is printed on the smallest card of the catalogue that holds so much; None: none does."""
    labels = [gpu.label_gib for gpu in known_gpus().values() if gpu.memory_bytes >= need_bytes]
    return round(min(labels)) if labels else None
