"""How many parameters one GPU holds, trains and sends."""

from __future__ import annotations

from planner.memory.adapters import adapter_parameters, whole_parameters
from planner.parameters import count_parameters
from planner.runs import TrainingRun


def dense_parameters(run: TrainingRun) -> float:
    """On one GPU of a stage before data-parallel sharding, without routed experts."""
    counts, layout = count_parameters(run.shape), run.layout
    return (counts.total - counts.routed_total) / layout.tensor / layout.pipeline


def routed_parameters(run: TrainingRun) -> float:
    layout = run.layout
    return count_parameters(run.shape).routed_total / (layout.expert * expert_tensor(run)) / layout.pipeline


def expert_tensor(run: TrainingRun) -> int:
    """Megatron splits experts as it splits the rest unless told otherwise."""
    return run.layout.expert_tensor or run.layout.tensor


def stage_parameters(run: TrainingRun) -> float:
    return dense_parameters(run) + routed_parameters(run)


def trained_parameters(run: TrainingRun) -> float:
    """On one GPU before data-parallel sharding."""
    if not run.lora:
        return stage_parameters(run)
    trained = adapter_parameters(run.shape, run.lora) + whole_parameters(run.shape, run.lora)
    return trained / run.layout.pipeline / run.layout.tensor


def gradient_bytes(run: TrainingRun) -> float:
    if run.gradient_dtype:
        return 4.0 if run.gradient_dtype == "fp32" else 2.0
    return 4.0 if run.engine in {"megatron", "nemo"} else 2.0
