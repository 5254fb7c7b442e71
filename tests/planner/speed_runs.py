"""Runs that the tests of speed start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.catalogue.gpus import Gpu, gpus
from planner.catalogue.models import models
from planner.runs import Layout, ServingRun, TrainingRun

LLAMA_8B = models()["meta-llama/Meta-Llama-3.1-8B"].shape
MIXTURE = models()["Qwen/Qwen3-30B-A3B"].shape
A100 = gpus()["a100-sxm-80"]
H100 = gpus()["h100-sxm-80"]


def training(**changes: Any) -> TrainingRun:
    run = TrainingRun(
        shape=LLAMA_8B,
        method="full",
        engine="megatron",
        layout=Layout(),
        sequence_length=4096,
        micro_batch=1,
        gradient_accumulation=8,
    )
    return replace(run, **changes)


def serving(**changes: Any) -> ServingRun:
    run = ServingRun(
        shape=LLAMA_8B, engine="vllm", layout=Layout(), concurrency=8, prompt_tokens=1024, output_tokens=256
    )
    return replace(run, **changes)


def faster(gpu: Gpu, factor: float) -> Gpu:
    """The same card with every rate and bandwidth higher by the factor."""
    rates = {
        name: (value and value * factor) for name in ("bf16", "fp16", "fp8") if (value := getattr(gpu, name)) or True
    }
    return replace(gpu, memory_bandwidth=(gpu.memory_bandwidth or 0) * factor, **rates)
