"""Measured speeds against the planner's: what a row of throughput, MFU or time to first token says, predicted in the row's own unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from planner.memory.elements import DTYPE_BYTES, WEIGHT_BYTES
from planner.memory.serving import serving_memory
from planner.runs import ServingRun, TrainingRun
from planner.speed.cards import NoRateError
from planner.speed.engines import BEHAVIOUR
from planner.speed.kernels import ENGINES
from planner.speed.serving import ServingSpeed, serving_speed
from planner.speed.training import TrainingSpeed, training_speed
from tests.bench.planner_rows import Measured
from tests.bench.planner_shapes import CannotExpressError

KINDS = ("train_throughput", "mfu", "infer_throughput")
# The tables of llm-foundry are of 2023: its long sequences run at the first flash kernels' pace on every card.
FLASH_OF_ENGINE = {"fsdp/llm-foundry": 1}
# Prompt and output of a server with more requests than it takes at a time.
LOADED = "total_tokens_per_s"
# Requests that trtllm-bench keeps at most in flight.
LARGEST_BATCH = 2048

TRAINING: Mapping[str, Callable[[TrainingSpeed], float]] = {
    "train_tokens_per_s_per_gpu": lambda speed: speed.tokens_per_second_per_gpu,
    "train_tokens_per_s_total": lambda speed: speed.tokens_per_second,
    "mfu_percent": lambda speed: 100 * speed.mfu,
    "seconds_per_iteration": lambda speed: speed.step.expected,
}


def predict_speed(row: Measured) -> float:
    """In the unit of the row's quantity. Raises CannotExpressError with the reason."""
    if row.gpu is None:
        raise CannotExpressError("GPU not stated")
    try:
        if isinstance(row.run, TrainingRun):
            return _training_value(row, training_run_of(row))
        return _serving_value(row, serving_run_of(row))
    except NoRateError as error:
        raise CannotExpressError(str(error)) from error


def _training_value(row: Measured, run: TrainingRun) -> float:
    assert row.gpu
    if row.quantity not in TRAINING:
        raise CannotExpressError(f"quantity {row.quantity}")
    if run.engine not in BEHAVIOUR:
        raise CannotExpressError(f"engine {run.engine}")
    return TRAINING[row.quantity](training_speed(run, row.gpu))


def training_run_of(row: Measured) -> TrainingRun:
    assert isinstance(row.run, TrainingRun)
    run = row.run
    if flash := FLASH_OF_ENGINE.get(row.cells["engine"]):
        run = replace(run, engine_options={**run.engine_options, "flash_attention": flash})
    return run


def serving_run_of(row: Measured) -> ServingRun:
    assert isinstance(row.run, ServingRun)
    run = row.run
    if run.kv_dtype not in DTYPE_BYTES:
        # Rows with 4-bit arithmetic that do not say: an 8-bit cache.
        run = replace(run, kv_dtype="fp8")
    if row.gpus > run.layout.gpus:
        # transformers lays the layers over the cards one after another.
        run = replace(run, layout=replace(run.layout, pipeline=row.gpus // run.layout.tensor))
    if run.engine_options.get("load") == "max" or row.quantity == LOADED:
        fits = serving_memory(run, row.gpu).requests
        run = replace(run, concurrency=max(1, min(run.max_sequences or LARGEST_BATCH, fits)))
    return run


def _serving_value(row: Measured, run: ServingRun) -> float:
    assert row.gpu
    if run.engine not in ENGINES or run.weight_format not in WEIGHT_BYTES:
        raise CannotExpressError(f"engine {run.engine} with weights in {run.weight_format}")
    speed = serving_speed(run, row.gpu)
    if row.quantity == "other" and run.engine_options.get("metric") == "time_to_first_token":
        return speed.first_token.expected
    if row.quantity in {"prompt_plus_output_tokens_per_s", LOADED}:
        return speed.tokens_per_second
    generated = _generated(speed)
    if row.quantity == "output_tokens_per_s_total":
        return generated
    if row.quantity == "output_tokens_per_s_per_gpu":
        return generated / row.gpus
    raise CannotExpressError(f"quantity {row.quantity}")


def _generated(speed: ServingSpeed) -> float:
    """Rows that do not say how many tokens were generated give the pace of the tokens alone."""
    if speed.output_tokens:
        return speed.output_tokens_per_second
    return speed.batch * speed.batches / speed.token.expected
