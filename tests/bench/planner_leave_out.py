"""How far the planner's fitted memory constants carry: refit without one source or one model family, scored on what was left out.

    python -m tests.bench.planner_leave_out --measured FILE

A constant starts at what counting alone gives (`prior`) and moves towards, to or beyond the value in the code only where that lowers
the error on the rows that are left; one that rests on the rows left out stays at its prior.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.memory import engines, kept, logits, overheads, quantized, serving
from tests.bench import planner_memory
from tests.bench.planner import MEMORY_KINDS, error_per_cent
from tests.bench.planner_rows import Measured, Skipped, read_measured

STEPS = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True)
class Constant:
    """One fitted number: where it stands, what counting alone would say, and how to set it."""

    name: str
    prior: float
    fitted: float
    put: Callable[[float], None]


def _of_module(module: Any, name: str, *, prior: float = 0.0) -> Constant:
    return Constant(name, prior, getattr(module, name), lambda value: setattr(module, name, value))


def _per_logit(name: str, *, prior: float) -> Constant:
    whole = getattr(logits, name)
    return Constant(name, prior, whole.bytes, lambda value: setattr(logits, name, replace(whole, bytes=value)))


def _kept(engine: str, field: str, *, prior: float) -> Constant:
    def put(value: float) -> None:
        changes: dict[str, Any] = {field: value}
        kept.BY_ENGINE[engine] = replace(kept.BY_ENGINE[engine], **changes)
        kept._kept.cache_clear()

    return Constant(f"{engine}.{field}", prior, getattr(kept.BY_ENGINE[engine], field), put)


def constants() -> list[Constant]:
    return [
        _of_module(overheads, "WORKSPACE_BYTES"),
        _of_module(overheads, "WORKSPACE_HOPPER_BYTES"),
        _of_module(overheads, "ALLOCATOR_SLACK"),
        _of_module(overheads, "ALLOCATOR_SLACK_BYTES"),
        _of_module(overheads, "CONTEXT_BYTES"),
        _of_module(quantized, "GPTQ_UNPACKED_BYTES"),
        _kept("litgpt", "norm_input", prior=4.0),
        _kept("litgpt", "quantized", prior=0.0),
        _per_logit("CHUNKED_LITGPT", prior=4.0),
        _per_logit("MEGATRON_FUSED", prior=6.0),
        _of_module(engines, "SAMPLER_SORTED", prior=14.0),
        _of_module(engines, "SAMPLER", prior=10.0),
        _of_module(engines, "PROFILE_FIXED"),
        _of_module(engines, "NON_TORCH"),
        _of_module(engines, "NON_TORCH_TENSOR", prior=0.5 * 2**30),
        _of_module(engines, "GRAPH_PER_LAYER"),
        _of_module(serving, "HIDDEN_FROM_RUNTIME"),
    ]


@contextmanager
def as_in_the_code() -> Iterator[list[Constant]]:
    """The constants, to be changed inside and put back after."""
    every = constants()
    try:
        yield every
    finally:
        for constant in every:
            constant.put(constant.fitted)


def errors_of(rows: Iterable[Measured]) -> dict[str, list[float]]:
    """Absolute errors by source."""
    errors: dict[str, list[float]] = {}
    for row in rows:
        result = planner_memory.predict(row)
        if not isinstance(result, Skipped):
            errors.setdefault(row.source, []).append(abs(error_per_cent(row, result)))
    return errors


def macro_median(errors: dict[str, list[float]]) -> float:
    return statistics.fmean(statistics.median(values) for values in errors.values())


def refit(every: Sequence[Constant], rows: Sequence[Measured]) -> None:
    """One pass of coordinate descent from the priors; a step has to lower the mean error of the sources."""
    for constant in every:
        constant.put(constant.prior)
    for constant in every:
        tried = []
        for step in STEPS:
            constant.put(constant.prior + step * (constant.fitted - constant.prior))
            tried.append((_loss(rows), step))
        best = min(tried)[1]
        constant.put(constant.prior + best * (constant.fitted - constant.prior))


def _loss(rows: Sequence[Measured]) -> float:
    errors = errors_of(rows)
    return round(statistics.fmean(statistics.fmean(values) for values in errors.values()), 4)


def family(row: Measured) -> str:
    """("Qwen2.5-7B-Instruct" -> "qwen")"""
    name = row.run.shape.name.lower() if row.cells["model_id"] else row.cells["model"].lower().removeprefix("megatron ")
    return next(
        (
            letters
            for letters in ("llama", "qwen", "falcon", "gemma", "glm", "gpt", "moe", "bert", "phi")
            if letters in name
        ),
        "other",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    rows = [
        row
        for row in read_measured(options.measured)
        if isinstance(row, Measured) and row.kind in MEMORY_KINDS and not row.out_of_memory
    ]
    sys.stdout.write(f"{'left out':24}{'rows':>6}{'fitted with':>14}{'fitted without':>16}\n")
    for what, key in (("source", lambda row: row.source), ("family", family)):
        for name in sorted({key(row) for row in rows}):
            _report(
                f"{what} {name}", [row for row in rows if key(row) == name], [row for row in rows if key(row) != name]
            )
    return 0


def _report(name: str, out: Sequence[Measured], rest: Sequence[Measured]) -> None:
    whole = macro_median(errors_of(out))
    with as_in_the_code() as every:
        refit(every, rest)
        without = macro_median(errors_of(out))
    sys.stdout.write(f"{name:24}{len(out):6}{whole:13.1f}%{without:15.1f}%\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
