"""Lines in which a trainer says that it has saved a checkpoint, and of which step. Pure.

Hugging Face Trainer ("Saving model checkpoint to out/checkpoint-500"), accelerate ("Saving current state to …"), DeepSpeed
("Saved checkpoint …/global_step500/…"), Megatron ("successfully saved checkpoint from iteration 500"), Lightning and torchtitan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Checkpoint", "read_checkpoint"]

_SAVED = re.compile(
    r"\bsav(?:ed|ing)\b[^\n]{0,80}\b(?:checkpoint|current state|model to)|\bcheckpoint\b[^\n]{0,40}\bsaved\b",
    re.IGNORECASE,
)
_NOT_YET = re.compile(r"\b(?:fail|error|could not|cannot|not saved|will be saved|skip)", re.IGNORECASE)
_STEP = re.compile(
    r"checkpoint[-_](\d{1,12})\b|\biteration\s+(\d{1,12})\b|\bglobal[_ ]step[ _=:]?\s*(\d{1,12})\b|\bstep[ _=:-]\s*(\d{1,12})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`step`: None = the line does not say."""

    step: int | None = None


def read_checkpoint(text: str) -> Checkpoint | None:
    if not _SAVED.search(text) or _NOT_YET.search(text):
        return None
    found = _STEP.search(text)
    return Checkpoint(int(next(group for group in found.groups() if group)) if found else None)
