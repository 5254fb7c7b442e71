"""Lines that name their values: dicts, JSON, "name=value" and "name: value". Pure.

What a name means is in NAMES, whoever prints it: Hugging Face's Trainer and what is built on it, accelerate examples, torchtitan,
NeMo, axolotl, LLaMA-Factory, nanoGPT and most people's own loops.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any

from jobs.progress.numbers import NUMBER, number, size_bytes, whole
from jobs.progress.point import Point

NAMES: Mapping[str, str] = {
    "step": "step", "global_step": "step", "iter": "step", "iteration": "step", "it": "step", "global step": "step",
    "update": "step", "num_updates": "step",
    "steps": "steps", "total_steps": "steps", "max_steps": "steps",
    "epoch": "epoch",
    "loss": "loss", "train_loss": "loss", "loss train": "loss", "training_loss": "loss", "lm loss": "loss", "train loss": "loss",
    "reduced_train_loss": "loss", "avg_loss": "loss",
    "eval_loss": "eval_loss", "val_loss": "eval_loss", "validation_loss": "eval_loss", "val loss": "eval_loss", "valid_loss": "eval_loss",
    "learning_rate": "learning_rate", "lr": "learning_rate", "learning rate": "learning_rate",
    "grad_norm": "grad_norm", "grad norm": "grad_norm", "gnorm": "grad_norm", "gradient_norm": "grad_norm",
    "train_step_timing in s": "seconds_per_step", "seconds_per_step": "seconds_per_step", "step_time": "seconds_per_step",
    "train_samples_per_second": "samples_per_second", "samples_per_second": "samples_per_second", "samples/s": "samples_per_second",
    "currsamplespersec": "samples_per_second",
    "tokens_per_second": "tokens_per_second", "tok/s": "tokens_per_second", "tokens/s": "tokens_per_second",
    "train_tokens_per_second": "tokens_per_second", "tokens/sec": "tokens_per_second", "tok/sec": "tokens_per_second", "wps": "tokens_per_second",
    "tps": "tokens_per_gpu", "tokens_per_second_per_gpu": "tokens_per_gpu", "tgs": "tokens_per_gpu",
    "tflops": "tflops_per_gpu",
    "memory": "memory_bytes", "maxmemallocated": "memory_bytes", "max_memory": "memory_bytes", "peak_allocated_bytes": "memory_bytes",
}  # fmt: skip
WHOLE = frozenset({"step", "steps", "skipped_steps"})
# One word or a few, then = or :, then a number with an optional unit; "lr=[1e-05]" names the first of several.
_NAME = r"\b[A-Za-z][\w/]*(?:[ ][a-z]+(?:[ ]s)?)?"
_PAIR = re.compile(rf"(?P<name>{_NAME})\s*[=:]\s*\[?(?P<value>{NUMBER})(?P<unit>\s?(?:ms|[kKMGT]i?B|s)\b)?")
# Without a sign between: "step 10 loss 2.31", "iter 100: loss 3.12, time 123.45ms".
_SPACED = re.compile(
    rf"\b(?P<name>step|iter|iteration|epoch|loss|lr|tok/s|val loss)\s+(?P<value>{NUMBER})(?:/(?P<of>\d+))?"
)
_OF = re.compile(r"\b(?:global_)?(?:step|iter|iteration)s?\s*[=:]?\s*(\d+)\s*/\s*(\d+)", re.IGNORECASE)
_MILLISECONDS = re.compile(rf"\b(?:time|iter time|step time|dt)\s*[=:]?\s*(?P<value>{NUMBER})\s*ms\b")
_DICT = re.compile(r"\{[^{}]*\}")
LONGEST = 4096


@dataclass(slots=True)
class _Found:
    values: dict[str, Any]

    def take(self, name: str, value: object, unit: str = "") -> None:
        key = NAMES.get(name.strip().lower())
        if key is None or key in self.values:
            return
        read = _value(key, value, unit)
        if read is not None:
            self.values[key] = read


def read_dict(line: str) -> Point | None:
    """A dict as Python prints it, or a line of JSON; of nested ones the first that holds no other."""
    found = _DICT.search(line)
    if found is None:
        return None
    values = _literal(found[0])
    if values is None:
        return None
    taken = _Found({})
    for name, value in values.items():
        if isinstance(name, str):
            taken.take(name, value)
    return _point(taken)


def read_pairs(line: str) -> Point | None:
    """Names with their values anywhere in a line. One that gives a loss or a rate without saying where it is stays a point."""
    taken = _Found({})
    if found := _OF.search(line):
        taken.values |= {"step": int(found[1]), "steps": int(found[2])}
    for found in _PAIR.finditer(line):
        taken.take(found["name"], found["value"], (found["unit"] or "").strip())
    for found in _SPACED.finditer(line):
        taken.take(found["name"], found["value"])
    if (found := _MILLISECONDS.search(line)) and (value := number(found["value"])) is not None:
        taken.values.setdefault("seconds_per_step", value / 1000)
    return _point(taken)


def _point(taken: _Found) -> Point | None:
    """A name alone proves nothing: "epoch: 3" or "step 2" may be part of any sentence."""
    values = taken.values
    if not values.keys() - {"step", "steps", "epoch", "memory_bytes", "learning_rate"}:
        return None
    return Point(**values)


def _literal(text: str) -> dict[Any, Any] | None:
    try:
        read = json.loads(text)
    except ValueError:
        try:
            # nan and inf are names to Python's own reader.
            read = ast.literal_eval(re.sub(r"(?<=[\s:\[,])(-?)(nan|inf)\b", r"\1'\2'", text))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
    return read if isinstance(read, dict) else None


def _value(key: str, value: object, unit: str) -> float | int | None:
    text = (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )
    if text is None:
        return None
    if key in WHOLE:
        return whole(text)
    if key == "memory_bytes":
        return (
            size_bytes(f"{text}{unit}") if unit or not text.replace(",", "").replace(".", "").isdigit() else whole(text)
        )
    read = number(text)
    if read is None or (isinf(read) and key != "grad_norm"):
        return read if key == "loss" else None
    return read / 1000 if unit == "ms" else read
