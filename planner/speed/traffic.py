"""Bytes that go through a card's memory beside the matrix multiplications, per token and layer: norms, residuals, rotations, activations, adapters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.parameters import attention_width
from planner.runs import Lora, TrainingRun
from planner.shapes import ModelShape
from planner.speed.engines import Kernels
from planner.speed.flops import Matrix, always_matrices, attention_matrices, layer_kinds, mlp_matrices, routed_matrices

ELEMENT = 2.0
# Reads and writes of one element, forward. A norm reads and writes; a residual reads two and writes one; there are two of each.
_NORMS_AND_RESIDUALS = 2 * 2 + 2 * 3
_ROTATION = 2
# An adapter: dropout (2), product with A and B (reads the input, writes the output), scaling (2), sum with the frozen output (3).
_ADAPTER_INPUT, _ADAPTER_OUTPUT = 3, 6
# Copies to the experts' order and back, with the weighting of the sum.
_PERMUTE = 6


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Bytes of one token in one layer (mean over the layers), forward. `streams` are as wide as the residual, `widths` are split by tensor parallelism;
    `experts`: tokens brought to their experts and back.
    """

    streams: float
    widths: float
    experts: float
    adapters: float


@lru_cache(maxsize=1024)
def layer_traffic(shape: ModelShape, kernels: Kernels, lora: Lora | None) -> LayerTraffic:
    streams = _NORMS_AND_RESIDUALS * shape.hidden * kernels.norms
    permuted = _PERMUTE * _expert_share(shape) * shape.hidden * (shape.experts.active if shape.experts else 0)
    widths = _attention_widths(shape, kernels) + _mlp_widths(shape) * kernels.activation + _matrix_ends(shape)
    adapters = adapter_widths(shape, lora) if lora else 0.0
    return LayerTraffic(ELEMENT * streams, ELEMENT * widths, ELEMENT * permuted, ELEMENT * adapters)


def _attention_widths(shape: ModelShape, kernels: Kernels) -> float:
    query = attention_width(shape)
    keys = shape.kv_heads * shape.head_dim if not shape.latent else query
    rotated = (query + keys) * _ROTATION * kernels.rotation if shape.positions == "rope" else 0
    return 2 * query + 2 * keys + rotated


def _mlp_widths(shape: ModelShape) -> float:
    """The activation reads what the matrices wrote (gate and up) and writes what the next one reads."""
    per_width = 3 if shape.gated_mlp else 2
    dense, expert = layer_kinds(shape)
    width = dense * shape.intermediate
    if shape.experts:
        width += expert * (shape.experts.active * shape.experts.intermediate + shape.experts.shared_intermediate)
    return per_width * width / shape.layers


def _matrix_ends(shape: ModelShape) -> float:
    dense, expert = layer_kinds(shape)
    ends = shape.layers * _ends(attention_matrices(shape)) + dense * _ends(mlp_matrices(shape))
    ends += expert * _ends(always_matrices(shape) + routed_matrices(shape))
    return ends / shape.layers


@lru_cache(maxsize=1024)
def cast_bytes(shape: ModelShape) -> float:
    """Of one token and layer, one pass: what enters a multiplication is read in 16 bit and written twice in 8 (as it is and transposed)."""
    return 2 * ELEMENT * _matrix_ends(shape) / 2


def _ends(matrices: tuple[Matrix, ...]) -> float:
    return sum(matrix.copies * (matrix.inputs + matrix.outputs) for matrix in matrices)


def _expert_share(shape: ModelShape) -> float:
    return layer_kinds(shape)[1] / shape.layers


@lru_cache(maxsize=1024)
def adapted_matrices(shape: ModelShape, lora: Lora) -> tuple[Matrix, ...]:
    """Of one layer; of a mixture only the layers that every token meets."""
    layer = attention_matrices(shape) + (mlp_matrices(shape) if not shape.experts else always_matrices(shape))
    return tuple(matrix for matrix in layer if matrix.name in lora.targets)


def adapter_widths(shape: ModelShape, lora: Lora) -> float:
    return sum(_ADAPTER_INPUT * m.inputs + _ADAPTER_OUTPUT * m.outputs for m in adapted_matrices(shape, lora))


def loss_bytes(run: TrainingRun, kernels: Kernels) -> float:
    """Of one token, forward and backward: logits over the vocabulary in 16 bit, in 32 bit for the softmax, and their gradient."""
    return run.shape.vocab * (kernels.loss_chunked if run.logits == "chunked" else kernels.loss)
