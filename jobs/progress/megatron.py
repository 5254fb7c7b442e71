"""Megatron-LM and what is built on it: values between bars, each with its own name. Pure."""

from __future__ import annotations

import re
from math import isfinite

from jobs.progress.numbers import NUMBER, number
from jobs.progress.point import Point

_ITERATION = re.compile(r"\biteration\s+(\d+)/\s*(\d+)\s*\|")
_FIELD = re.compile(rf"\|?\s*(?P<name>[A-Za-z][^:|]*?)\s*:\s*(?P<value>{NUMBER})\s*(?=\|)")
_NAMES = {
    "lm loss": "loss",
    "loss": "loss",
    "learning rate": "learning_rate",
    "grad norm": "grad_norm",
    "number of skipped iterations": "skipped_steps",
}
_MILLISECONDS = "elapsed time per iteration (ms)"
_TFLOPS = "throughput per gpu (tflop/s/gpu)"


def read_megatron(line: str) -> Point | None:
    found = _ITERATION.search(line)
    if found is None:
        return None
    values: dict[str, float | int] = {"step": int(found[1]), "steps": int(found[2])}
    for pair in _FIELD.finditer(line[found.end() :]):
        name, value = pair["name"].strip().lower(), number(pair["value"])
        if value is None:
            continue
        if name == _MILLISECONDS:
            values["seconds_per_step"] = value / 1000
        elif name == _TFLOPS:
            values["tflops_per_gpu"] = value
        elif (key := _NAMES.get(name)) is not None:
            values[key] = round(value) if key == "skipped_steps" and isfinite(value) else value
    return Point(**values)  # type: ignore[arg-type]  # whole where the column is
