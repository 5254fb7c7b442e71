"""Which GPU models somebody means: one of our names is that model alone, words that leave something open are all models that have them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fleet.providers.gpus import NAMES, canonical

# What a catalogue puts behind a model: remarks in brackets, and the memory on the label.
REMARK = re.compile(r"\(.*?\)")
MEMORY = re.compile(r"\s+~?\d+\s*(gb|gib)\b.*", re.IGNORECASE)


def models_asked(asked: str, known: Iterable[str]) -> list[str]:
    """H100 is the SXM, the PCIe and the NVL one; H100 SXM is one; A100 80GB is every form of 80 GB."""
    if exact := our_name(asked):
        return [exact]
    wanted = words_of(asked)
    return sorted(model for model in known if wanted and wanted <= words_of(model))


def our_name(asked: str) -> str | None:
    plain = REMARK.sub(" ", asked)
    return next((name for word in (asked, plain, MEMORY.sub("", plain)) if (name := canonical(word)) in NAMES), None)


def words_of(name: str) -> frozenset[str]:
    """A100-80GB and A100 80 GB are the same two words."""
    joined = re.sub(r"(\d+)\s*(gb|gib|g)\b", r" \1gb ", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", joined))
