"""Measured rows (the columns of planner_measured.csv) as runs that the planner takes.

Only structured columns are read. A row that a run cannot express is `Skipped` with its reason; nothing is guessed from prose.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from planner.catalogue.gpus import Gpu, gpus
from planner.runs import (
    Attention,
    Checkpointing,
    DType,
    Layout,
    Logits,
    Lora,
    Optimizer,
    ServingEngine,
    ServingRun,
    TrainingEngine,
    TrainingRun,
    WeightFormat,
    ZeroStage,
)
from tests.bench.planner_shapes import CannotExpressError, shape

TRAINING_ENGINES = {"fsdp/llm-foundry": "fsdp", "torchtitan": "fsdp", "peft": "transformers", "trl": "transformers"}
SERVING_ENGINES = {"tensorrt_llm": "tensorrt-llm", "torchtune": "transformers"}
OPTIMIZERS = {"adam8bit": "adamw-8bit"}
# What each engine's own recipes do where a row does not say.
RECIPES = {
    ("fsdp/llm-foundry", "logits"): "fused",
    ("torchtune", "checkpointing"): "full",
    ("torchtune", "logits"): "chunked",
    ("litgpt", "grad_accum"): "8",
    # Rows without a version are of the first Qwen and GLM releases, in 2023.
    ("transformers", "engine_version"): "4.31",
}
# NVFP4 and MXFP4 store as much as bitsandbytes's FP4: 4 bits and a scale for a few of them.
WEIGHT_FORMATS = {"int4": "gptq-int4", "nvfp4": "fp4", "mxfp4": "fp4"}
TRAINED_WHOLE = "(full)"
# What each engine's own recipes use, for rows that do not say: rank and adapted layers.
RECIPE_LORA = {
    "torchtune": Lora(8, ("q", "v", "o", "gate", "up", "down")),
    "litgpt": Lora(32, ("q", "v")),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """`value` in the unit of `quantity` (bytes, tokens, tokens/s, seconds, per cent); `out_of_memory`: the run did not fit and `value` is the card.

    `total_memory` is what the engine logged for one card, in bytes, where it did.
    """

    id: str
    kind: str
    source: str
    quantity: str
    value: float
    out_of_memory: bool
    run: TrainingRun | ServingRun
    gpu: Gpu | None
    gpus: int
    total_memory: float | None
    # Columns that the source does not state.
    assumed: frozenset[str]
    # All cells, for what only one part of the bench needs.
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that is not predicted. `excluded`: its own exclude_reason says that no formula can be asked to."""

    id: str
    kind: str
    source: str
    reason: str
    excluded: bool = False


def read_measured(path: Path) -> Iterator[Measured | Skipped]:
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            yield _row(cells)


def _row(cells: Mapping[str, str]) -> Measured | Skipped:
    kind, source = cells["kind"], cells["source"]
    if cells["exclude_reason"]:
        return Skipped(cells["id"], kind, source, cells["exclude_reason"], excluded=True)
    try:
        value = _value(cells)
        run = serving_run(cells) if cells["method2"] == "infer" else training_run(cells)
        gpu = _gpu(cells)
    except CannotExpressError as error:
        return Skipped(cells["id"], kind, source, str(error))
    return Measured(
        id=cells["id"],
        kind=kind,
        source=source,
        quantity=cells["quantity"],
        value=value,
        out_of_memory=cells["bound"] == "oom",
        run=run,
        gpu=gpu,
        gpus=_whole(cells, "n_gpus_num") or run.layout.gpus,
        total_memory=float(cells["total_gpu_memory_bytes"]) if cells["total_gpu_memory_bytes"] else None,
        assumed=frozenset(cells["assumed"].split()),
        cells=cells,
    )


def training_run(cells: Mapping[str, str]) -> TrainingRun:
    if cells["method2"] not in {"full", "lora", "qlora"}:
        raise CannotExpressError(f"method {cells['method2']}")
    run: dict[str, Any] = {
        "method": cells["method2"],
        "engine": _word("engine", TRAINING_ENGINES.get(cells["engine"], cells["engine"]), TrainingEngine),
        "engine_version": cells["engine_version"],
        "optimizer": _word("optimizer", _optimizer(cells), Optimizer),
        "lora": _lora(cells),
        "checkpointing": _word("checkpointing", _known(cells, "checkpointing", "none"), Checkpointing),
        "recompute_modules": tuple(cells["recompute_modules"].split()),
        "attention": _word("attention", _known(cells, "attention", "flash"), Attention),
        "logits": _word("logits", _known(cells, "logits", "full"), Logits),
        "master_weights": cells["master_weights"] == "yes",
        "compiled": cells["compile"] == "yes",
        "packed": cells["packed"] != "no",
        "optimizer_offload": cells["optimizer_offload"] == "yes",
        "activation_offload": cells["activation_offload"] == "yes",
        "optimizer_in_backward": cells["optim_in_backward"] == "yes",
    }
    return TrainingRun(
        shape=shape(cells),
        layout=_layout(cells),
        sequence_length=_needed(cells, "input_tokens"),
        micro_batch=_needed(cells, "batch"),
        gradient_accumulation=int(_known(cells, "grad_accum", "1")),
        compute_dtype=_word("compute type", cells["compute_dtype"], DType),
        weight_format=_weight_format(cells),
        engine_options=_options(cells),
        **run,
    )


def serving_run(cells: Mapping[str, str]) -> ServingRun:
    """Rows that do not say how many requests there were are of an idle server: one request of no tokens."""
    return ServingRun(
        shape=shape(cells),
        engine=_word("engine", SERVING_ENGINES.get(cells["engine"], cells["engine"]), ServingEngine),
        engine_version=cells["engine_version"] or RECIPES.get((cells["engine"], "engine_version"), ""),
        layout=_layout(cells),
        concurrency=_whole(cells, "batch") or 1,
        prompt_tokens=_whole(cells, "input_tokens") or 0,
        output_tokens=_whole(cells, "output_tokens") or _reserved_tokens(cells),
        weight_format=_weight_format(cells),
        compute_dtype=_compute_dtype(cells),
        kv_dtype=_word("cache type", cells["kv_dtype"] or cells["compute_dtype"], (*get_args(DType), "int8")),
        memory_utilization=float(cells["gpu_memory_utilization"] or 0.9),
        max_model_len=_whole(cells, "max_model_len"),
        max_sequences=_whole(cells, "max_num_seqs"),
        max_batched_tokens=_whole(cells, "max_num_batched_tokens"),
        cuda_graphs="enforce_eager" not in cells["engine_args"],
        engine_options=_options(cells),
    )


def _reserved_tokens(cells: Mapping[str, str]) -> int:
    """torchtune allocates its cache for the model's whole context; others that do not say generated next to nothing."""
    return shape(cells).max_positions if cells["engine"] == "torchtune" else 0


def _layout(cells: Mapping[str, str]) -> Layout:
    return Layout(
        data=_whole(cells, "dp2") or 1,
        tensor=_whole(cells, "tp2") or 1,
        pipeline=_whole(cells, "pp2") or 1,
        virtual_pipeline=_whole(cells, "vpp") or 1,
        context=_whole(cells, "cp") or 1,
        expert=_whole(cells, "ep") or 1,
        expert_tensor=_whole(cells, "etp"),
        zero_stage=cast(ZeroStage, _whole(cells, "zero") or 0),
        sequence_parallel=cells["seq_parallel"] == "yes",
    )


def _lora(cells: Mapping[str, str]) -> Lora | None:
    if cells["method2"] == "full":
        return None
    if not cells["lora_rank"] and cells["engine"] in RECIPE_LORA:
        return RECIPE_LORA[cells["engine"]]
    if not cells["lora_rank"]:
        raise CannotExpressError("rank or targets of the LoRA not stated")
    adapted, _, whole = cells["lora_targets"].partition("+")
    targets = [layer for name in adapted.split(",") for layer in (("gate", "up", "down") if name == "mlp" else (name,))]
    return Lora(
        rank=int(cells["lora_rank"]),
        targets=tuple(targets),
        trained_whole=tuple(whole.removesuffix(TRAINED_WHOLE).split(",")) if whole else (),
    )


def _optimizer(cells: Mapping[str, str]) -> str:
    name = OPTIMIZERS.get(cells["optimizer2"], cells["optimizer2"] or "adamw")
    # The one thing that only the collected column tells: whether the 8-bit states are paged to the host.
    return "adamw-8bit-paged" if name == "adamw-8bit" and cells["optimizer"].startswith("paged") else name


def _weight_format(cells: Mapping[str, str]) -> Any:
    name = WEIGHT_FORMATS.get(cells["weight_format"], cells["weight_format"])
    return _word("weight format", name, WeightFormat)


def _compute_dtype(cells: Mapping[str, str]) -> Any:
    """INT8 products are added up and handed on in 16 bits."""
    return "fp16" if cells["compute_dtype"] == "int8" else _word("compute type", cells["compute_dtype"], DType)


def _value(cells: Mapping[str, str]) -> float:
    if not cells["value_si"]:
        raise CannotExpressError("no value")
    return float(cells["value_si"])


def _gpu(cells: Mapping[str, str]) -> Gpu | None:
    if cells["gpu_id"] and cells["gpu_id"] not in gpus():
        raise CannotExpressError(f"GPU {cells['gpu_id']} not in the catalogue")
    return gpus()[cells["gpu_id"]] if cells["gpu_id"] else None


def _word(what: str, value: str, allowed: Any) -> Any:
    """A word that the planner's types know."""
    if value not in (allowed if isinstance(allowed, tuple) else get_args(allowed)):
        raise CannotExpressError(f"{what} {value or 'not stated'}")
    return value


def _options(cells: Mapping[str, str]) -> dict[str, object]:
    return dict(json.loads(cells["engine_args"])) if cells["engine_args"] else {}


def _known(cells: Mapping[str, str], column: str, otherwise: str) -> str:
    """What the source does not say is what the engine's recipe does, else `otherwise`; an assumed cell gives way to a recipe."""
    cell, recipe = cells[column], RECIPES.get((cells["engine"], column))
    if cell in {"", "unknown"}:
        return recipe or otherwise
    return recipe if recipe and column in cells["assumed"].split() else cell


def _whole(cells: Mapping[str, str], column: str) -> int | None:
    return int(float(cells[column])) if cells[column] else None


def _needed(cells: Mapping[str, str], column: str) -> int:
    number = _whole(cells, column)
    if not number:
        raise CannotExpressError(f"{column} not stated")
    return number
