"""Floating-point operations, counted exactly from a shape. A multiplication and an addition are two operations.

Attention is counted in one of two conventions. "causal": a query meets the keys up to itself, which is what a flash kernel computes.
"square": every query meets every key; published model FLOPs (PaLM, appendix B: 12 L h s a token; llm-foundry; Megatron) count so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from planner.parameters import attention_width
from planner.shapes import LatentAttention, ModelShape

AttentionCount = Literal["causal", "square"]
# A weight gradient and an input gradient for each matrix: two multiplications of the size of the forward one.
BACKWARD_PER_FORWARD = 2.0


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear layer. `copies`: how many of them one token goes through (the active experts of a mixture)."""

    name: str
    inputs: int
    outputs: int
    copies: int = 1

    @property
    def elements(self) -> int:
        return self.inputs * self.outputs * self.copies

    @property
    def flops(self) -> float:
        """Forward, one token."""
        return 2.0 * self.elements


@dataclass(frozen=True, slots=True)
class Forward:
    """Forward operations of one token in the whole model; `attention` (scores and their sum of values) is its mean over a sequence."""

    projections: float
    mlp: float
    routed: float
    head: float
    attention: float

    @property
    def matrices(self) -> float:
        return self.projections + self.mlp + self.routed + self.head

    @property
    def total(self) -> float:
        return self.matrices + self.attention


@lru_cache(maxsize=1024)
def forward_flops(shape: ModelShape, sequence: int, *, count: AttentionCount = "causal") -> Forward:
    """Of one token of a sequence of `sequence` tokens, without the layers that only predict further tokens."""
    dense, expert = layer_kinds(shape)
    layers = dense + expert
    return Forward(
        projections=layers * sum(matrix.flops for matrix in attention_matrices(shape)),
        mlp=dense * sum(m.flops for m in mlp_matrices(shape)) + expert * sum(m.flops for m in always_matrices(shape)),
        routed=expert * sum(matrix.flops for matrix in routed_matrices(shape)),
        head=2.0 * shape.hidden * shape.vocab,
        attention=attention_flops(shape, sequence, count=count) / sequence,
    )


def model_flops_per_token(shape: ModelShape, sequence: int, *, count: AttentionCount = "square") -> float:
    """Forward and backward of one trained token without anything computed twice: what MFU counts. 6N within the attention."""
    forward = forward_flops(shape, sequence, count=count)
    prediction = prediction_flops(shape, sequence, count=count)
    return (forward.total + prediction) * (1 + BACKWARD_PER_FORWARD)


def prediction_flops(shape: ModelShape, sequence: int, *, count: AttentionCount = "causal") -> float:
    """Forward, one token, of the layers that predict further tokens: a layer, the projection of [hidden; embedding], the shared head."""
    if not shape.prediction_layers:
        return 0.0
    forward = forward_flops(shape, sequence, count=count)
    _, expert = layer_kinds(shape)
    last = always_matrices(shape) + routed_matrices(shape) if expert else mlp_matrices(shape)
    layer = sum(m.flops for m in (*attention_matrices(shape), *last)) + forward.attention / shape.layers
    return shape.prediction_layers * (layer + 4.0 * shape.hidden**2 + forward.head)


def attention_flops(shape: ModelShape, sequence: int, *, count: AttentionCount = "causal") -> float:
    """Forward, all layers, one sequence: q·k over the width of the keys and p·v over that of the values."""
    width = attention_width(shape) + shape.heads * (shape.latent.value_dim if shape.latent else shape.head_dim)
    return sum(layers * 2.0 * width * _pairs(sequence, window, count) for layers, window in window_layers(shape))


def cached_attention_flops(shape: ModelShape, context: float) -> float:
    """Forward of one token against a cache of `context` tokens, all layers."""
    if shape.latent:
        # Absorbed: keys and values stay compressed, each head works on the latent and the rotary part.
        width = shape.heads * (2 * shape.latent.kv_rank + shape.latent.rope_dim)
    else:
        width = 2 * shape.heads * shape.head_dim
    return sum(layers * 2.0 * width * min(context, window or context) for layers, window in window_layers(shape))


def window_layers(shape: ModelShape) -> list[tuple[int, int | None]]:
    """How many layers see how far back: None is everything."""
    if not shape.sliding:
        return [(shape.layers, None)]
    of = shape.sliding.local + shape.sliding.full
    full = shape.layers * shape.sliding.full // of
    return [(shape.layers - full, shape.sliding.window), (full, None)]


def _pairs(sequence: int, window: int | None, count: AttentionCount) -> float:
    if count == "square":
        return float(sequence) ** 2
    reach = min(sequence, window or sequence)
    return reach * (reach + 1) / 2 + (sequence - reach) * reach


def layer_kinds(shape: ModelShape) -> tuple[int, int]:
    """Layers with a plain MLP, and layers with experts."""
    dense = shape.experts.dense_layers if shape.experts else shape.layers
    return dense, shape.layers - dense


def attention_matrices(shape: ModelShape) -> tuple[Matrix, ...]:
    if shape.latent:
        return tuple(_latent_matrices(shape, shape.latent))
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    hidden = shape.hidden
    return Matrix("q", hidden, query), Matrix("k", hidden, key), Matrix("v", hidden, key), Matrix("o", query, hidden)


def _latent_matrices(shape: ModelShape, latent: LatentAttention) -> Iterator[Matrix]:
    query = attention_width(shape)
    if latent.query_rank:
        yield Matrix("q_down", shape.hidden, latent.query_rank)
        yield Matrix("q", latent.query_rank, query)
    else:
        yield Matrix("q", shape.hidden, query)
    yield Matrix("kv_down", shape.hidden, latent.kv_rank + latent.rope_dim)
    yield Matrix("kv", latent.kv_rank, shape.heads * (latent.nope_dim + latent.value_dim))
    yield Matrix("o", shape.heads * latent.value_dim, shape.hidden)


def mlp_matrices(shape: ModelShape) -> tuple[Matrix, ...]:
    return _feed_forward(shape, shape.intermediate)


def always_matrices(shape: ModelShape) -> tuple[Matrix, ...]:
    """Of a layer with experts: what every token meets (router and shared expert)."""
    if not shape.experts:
        return ()
    shared = shape.experts.shared_intermediate
    return Matrix("router", shape.hidden, shape.experts.count), *(_feed_forward(shape, shared) if shared else ())


def routed_matrices(shape: ModelShape) -> tuple[Matrix, ...]:
    """Of a layer with experts: the active ones."""
    if not shape.experts:
        return ()
    return _feed_forward(shape, shape.experts.intermediate, copies=shape.experts.active)


def _feed_forward(shape: ModelShape, width: int, *, copies: int = 1) -> tuple[Matrix, ...]:
    gate = (Matrix("gate", shape.hidden, width, copies),) if shape.gated_mlp else ()
    return *gate, Matrix("up", shape.hidden, width, copies), Matrix("down", width, shape.hidden, copies)
