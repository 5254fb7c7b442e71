"""What a language model is made of: the numbers that its memory, its arithmetic and its cache follow from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Positions = Literal["rope", "learned", "alibi", "none"]


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of a mixture: `count` in each such layer, `active` of them for each token."""

    count: int
    active: int
    intermediate: int
    shared_intermediate: int = 0
    # The first layers that have a plain MLP instead.
    dense_layers: int = 0


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2): ranks and head sizes in elements; `query_rank` is None where the query is not compressed."""

    query_rank: int | None
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """`window` tokens are seen by `local` layers of every `local + full`; full is 0 where every layer slides."""

    window: int
    local: int = 1
    full: int = 0


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder. Sizes in elements. `published_parameters` is what its makers say, where known; planner.parameters counts them."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool = False
    max_positions: int = 0
    gated_mlp: bool = True
    bias: bool = False
    qkv_bias: bool = False
    layer_norm: bool = False
    positions: Positions = "rope"
    experts: Experts | None = None
    latent: LatentAttention | None = None
    sliding: SlidingWindow | None = None
    # Layers that predict further tokens in training (DeepSeek-V3).
    prediction_layers: int = 0
    vision_parameters: int = 0
    published_parameters: int | None = None
    source: str = field(default="", compare=False)
