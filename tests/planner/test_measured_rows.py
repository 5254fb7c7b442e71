"""The reader of measured rows: cells as runs, and rows that no run can hold left out with their reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from planner.runs import Lora, TrainingRun
from tests.bench.planner_rows import Measured, Skipped, read_measured

COLUMNS = [
    "id", "kind", "model", "source", "quantity", "value_si", "bound", "model_id", "shape", "gpu_id", "n_gpus_num",
    "engine", "engine_version", "input_tokens", "output_tokens", "max_model_len", "batch", "grad_accum",
    "weight_format", "kv_dtype", "compute_dtype", "method2", "lora_rank", "lora_targets", "optimizer2",
    "master_weights", "optimizer", "optimizer_offload", "optim_in_backward", "activation_offload", "checkpointing",
    "recompute_modules", "attention", "logits", "compile", "packed", "tp2", "pp2", "vpp", "cp", "ep", "etp", "dp2",
    "zero", "seq_parallel", "gpu_memory_utilization", "total_gpu_memory_bytes", "max_num_seqs",
    "max_num_batched_tokens", "engine_args", "exclude_reason", "assumed",
]  # fmt: skip
LORA_ROW = {
    "id": "X-1", "kind": "train_memory", "source": "X", "quantity": "peak_allocated_per_gpu", "value_si": "1e10",
    "model_id": "meta-llama/Llama-2-7b-hf", "gpu_id": "a100-sxm-80", "engine": "litgpt", "input_tokens": "512", "batch": "2",
    "weight_format": "nf4", "compute_dtype": "bf16", "method2": "qlora", "lora_rank": "16", "lora_targets": "q,mlp+embed,head(full)",
    "checkpointing": "unknown", "optimizer2": "adam8bit", "optimizer": "paged 8-bit AdamW",
}  # fmt: skip


def read(tmp_path: Path, **cells: str) -> Measured | Skipped:
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerow({**LORA_ROW, **cells})
    [row] = read_measured(path)
    return row


def run_of(row: Measured | Skipped) -> Any:
    assert isinstance(row, Measured), row
    return row.run


def test_cells_become_a_training_run(tmp_path: Path) -> None:
    run = run_of(read(tmp_path))
    assert isinstance(run, TrainingRun)
    assert run.lora == Lora(16, ("q", "gate", "up", "down"), ("embed", "head"))
    assert (run.optimizer, run.checkpointing, run.sequence_length, run.micro_batch) == (
        "adamw-8bit-paged",
        "none",
        512,
        2,
    )


def test_a_shape_in_the_row_has_its_experts_and_ranks(tmp_path: Path) -> None:
    written = {
        "layers": 4, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "intermediate": 256, "vocab": 1000, "vocab_padded": 1024,
        "tied": True, "swiglu": True, "experts": 8, "topk": 2, "moe_intermediate": 128, "moe_layers": 3,
        "mla": {"q_lora": 32, "kv_lora": 16, "nope": 8, "rope": 8, "v": 8},
    }  # fmt: skip
    shape = run_of(read(tmp_path, model_id="", shape=json.dumps(written))).shape
    assert (shape.vocab, shape.experts.dense_layers, shape.latent.kv_rank) == (1024, 1, 16)


@pytest.mark.parametrize(
    ("cells", "reason", "excluded"),
    [
        ({"exclude_reason": "GPU not stated"}, "GPU not stated", True),
        ({"method2": "adapter"}, "method adapter", False),
        ({"input_tokens": ""}, "input_tokens not stated", False),
        ({"engine": "abacus"}, "engine abacus", False),
        ({"optimizer2": "lion"}, "optimizer lion", False),
        ({"weight_format": "int3"}, "weight format int3", False),
        ({"compute_dtype": ""}, "compute type not stated", False),
        ({"gpu_id": "h900"}, "GPU h900 not in the catalogue", False),
        ({"model_id": "a/b"}, "model a/b not in the catalogue", False),
        ({"engine": "deepspeed", "lora_rank": ""}, "rank or targets of the LoRA not stated", False),
    ],
)
def test_a_row_that_no_run_can_hold_has_its_reason(
    tmp_path: Path, cells: dict[str, str], reason: str, excluded: bool
) -> None:
    row = read(tmp_path, **cells)
    assert row == Skipped("X-1", "train_memory", "X", reason, excluded)
