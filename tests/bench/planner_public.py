"""The public estimators' formulae, to be held against ours on the same rows. Each says None where it knows no such run.

accelerate estimate-memory @00e4d264, DeepSpeed memory estimators @077e6740, EleutherAI cookbook calc_transformer_mem @827ee3b2,
Megatron-LM theoretical_memory_usage @d98e8a64: their mathematics, faults included; bytes for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.parameters import count_parameters
from planner.runs import TrainingRun
from planner.shapes import ModelShape

# cookbook: DeepSpeed's bucket and live parameters of stage 3, in elements.
_BUCKET, _LIVE = 5e8, 1e9


def accelerate(run: TrainingRun) -> float | None:
    """The greatest of model, gradients, optimizer and step, of which the print-out shows only that one; no int8, no int4."""
    parameters = count_parameters(run.shape).total
    if run.weight_format == "fp32":
        return 16.0 * parameters
    return 8.0 * parameters if run.weight_format in {"bf16", "fp16"} else None


def deepspeed(run: TrainingRun) -> float | None:
    counts, layout = count_parameters(run.shape), run.layout
    parameters, gpus = counts.total, layout.gpus
    if layout.zero_stage == 2:
        return 2.0 * parameters if run.optimizer_offload else 4.0 * parameters + 16.0 * parameters / gpus
    if layout.zero_stage == 3:
        largest = max(counts.embedding, counts.dense_layer if counts.dense_layers else counts.expert_layer)
        if run.optimizer_offload:
            return 4.0 * largest + (0.0 if run.parameter_offload else 2.0 * parameters / gpus)
        return 4.0 * largest + 18.0 * parameters / gpus
    return None


def cookbook(run: TrainingRun) -> float | None:
    shape, layout = run.shape, run.layout
    gpus, model = layout.gpus, layout.tensor * layout.pipeline
    parameters = _cookbook_parameters(shape, run.sequence_length)
    stage = layout.zero_stage
    weights = 2 * parameters / model / (gpus if stage == 3 else 1)
    gradients = 4 * parameters / model / (gpus if stage >= 2 else 1)
    per_parameter = 8.0 if run.optimizer in {"muon", "sgd-momentum", "sgd"} else 12.0
    optimizer = per_parameter * parameters / model / (gpus if stage >= 1 else 1)
    communication = 2 * _BUCKET + 2 * _LIVE if stage == 3 else 0.0
    return weights + gradients + optimizer + communication + _cookbook_activations(run)


def _cookbook_parameters(shape: ModelShape, sequence: int) -> float:
    hidden, layers = shape.hidden, shape.layers
    matrices = 3 if shape.gated_mlp else 2
    attention = 2 * (1 + shape.kv_heads / shape.heads) * layers * hidden**2
    mlp = matrices * shape.intermediate / hidden * layers * hidden**2
    return 2 * shape.vocab * hidden + hidden * sequence + 8 * hidden * layers + 2 * hidden + attention + mlp


def _cookbook_activations(run: TrainingRun) -> float:
    shape, tokens = run.shape, run.sequence_length * run.micro_batch
    linear = tokens * shape.hidden * shape.layers * 34.0
    return (
        linear
        if run.checkpointing == "full"
        else linear + 5.0 * shape.heads * run.sequence_length * tokens * shape.layers
    )


def megatron(run: TrainingRun) -> float | None:
    if run.lora:
        return None
    shape, layout = run.shape, run.layout
    counts = count_parameters(shape)
    pipeline, tensor = layout.pipeline, layout.tensor
    on_stage = counts.layers / pipeline + counts.embedding + (counts.head if pipeline == 1 else 0)
    per_parameter = 6 + 12 / layout.data if layout.zero_stage else 18.0
    return per_parameter * on_stage / tensor + _megatron_activations(run)


def _megatron_activations(run: TrainingRun) -> float:
    shape, layout = run.shape, run.layout
    size, tensor, pipeline = run.sequence_length * run.micro_batch * shape.hidden, layout.tensor, layout.pipeline
    if not layout.sequence_parallel:
        return size * shape.layers * (10 + 24 / tensor) * 1.05 / pipeline
    amount = shape.layers * size * (18 + 4 * shape.intermediate / shape.hidden)
    amount += 8 * run.sequence_length * run.micro_batch * pipeline + size * pipeline
    if pipeline == 1:
        amount += 4 * size * (1 + shape.vocab / shape.hidden)
    if layout.virtual_pipeline > 1:
        amount *= 1 + (pipeline - 1) / (pipeline * layout.virtual_pipeline)
    elif pipeline > 1:
        amount *= min(1.0, run.gradient_accumulation / pipeline)
    return amount / tensor


FORMULAE: Mapping[str, Callable[[TrainingRun], float | None]] = {
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "cookbook": cookbook,
    "megatron": megatron,
}
