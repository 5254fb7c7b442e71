"""How many parameters a shape has, part by part. Exact for the architectures of the catalogue (within 0.4 % of the published totals)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from planner.shapes import LatentAttention, ModelShape


@dataclass(frozen=True, slots=True)
class Parameters:
    """Counts of elements. `attention`, `norms`, `mlp`, `router`, `shared` and `routed` are of one layer."""

    embedding: int
    positions: int
    head: int
    final_norm: int
    attention: int
    norms: int
    mlp: int
    router: int
    shared: int
    routed: int
    dense_layers: int
    expert_layers: int
    expert_share: float
    vision: int
    prediction: int

    @property
    def dense_layer(self) -> int:
        return self.attention + self.norms + self.mlp

    @property
    def expert_layer(self) -> int:
        return self.attention + self.norms + self.router + self.shared + self.routed

    @property
    def layers(self) -> int:
        return self.dense_layers * self.dense_layer + self.expert_layers * self.expert_layer

    @property
    def ends(self) -> int:
        return self.embedding + self.positions + self.head + self.final_norm

    @property
    def total(self) -> int:
        """Without the layers that only predict further tokens in training; see `prediction`."""
        return self.ends + self.layers + self.vision

    @property
    def active(self) -> float:
        """What one token meets: the experts that it is routed to."""
        return self.total - self.expert_layers * self.routed * (1 - self.expert_share)

    @property
    def routed_total(self) -> int:
        return self.expert_layers * self.routed


@lru_cache(maxsize=1024)
def count_parameters(shape: ModelShape) -> Parameters:
    experts, norm = shape.experts, _norm(shape)
    dense_layers = experts.dense_layers if experts else shape.layers
    expert_layers = shape.layers - dense_layers
    counts = Parameters(
        embedding=shape.vocab * shape.hidden,
        positions=shape.max_positions * shape.hidden if shape.positions == "learned" else 0,
        head=0 if shape.tied_embeddings else shape.vocab * shape.hidden,
        final_norm=norm,
        attention=_attention(shape),
        norms=2 * norm,
        mlp=_mlp(shape, shape.intermediate),
        router=shape.hidden * experts.count if experts else 0,
        shared=_mlp(shape, experts.shared_intermediate) if experts and experts.shared_intermediate else 0,
        routed=experts.count * _mlp(shape, experts.intermediate) if experts else 0,
        dense_layers=dense_layers,
        expert_layers=expert_layers,
        expert_share=experts.active / experts.count if experts else 1.0,
        vision=shape.vision_parameters,
        prediction=0,
    )
    return _with_prediction(shape, counts) if shape.prediction_layers else counts


def attention_width(shape: ModelShape) -> int:
    """Elements of all query heads together."""
    return shape.heads * (shape.latent.nope_dim + shape.latent.rope_dim if shape.latent else shape.head_dim)


def _with_prediction(shape: ModelShape, counts: Parameters) -> Parameters:
    """A multi-token prediction layer: a layer of the last kind, two norms and the projection of [hidden; embedding] (DeepSeek-V3 §2.2)."""
    layer = counts.expert_layer if shape.experts else counts.dense_layer
    extra = shape.prediction_layers * (layer + 2 * shape.hidden**2 + 2 * _norm(shape))
    return replace(counts, prediction=extra)


def _norm(shape: ModelShape) -> int:
    return shape.hidden * (2 if shape.layer_norm and shape.bias else 1)


def _attention(shape: ModelShape) -> int:
    if shape.latent:
        return _latent(shape, shape.latent)
    query, key_value = shape.heads * shape.head_dim, 2 * shape.kv_heads * shape.head_dim
    biases = (query + key_value if shape.bias or shape.qkv_bias else 0) + (shape.hidden if shape.bias else 0)
    return shape.hidden * (2 * query + key_value) + biases


def _latent(shape: ModelShape, latent: LatentAttention) -> int:
    hidden, query = shape.hidden, attention_width(shape)
    rank = latent.query_rank
    queries = hidden * rank + rank * query + rank if rank else hidden * query
    down = hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank
    up = latent.kv_rank * shape.heads * (latent.nope_dim + latent.value_dim)
    return queries + down + up + shape.heads * latent.value_dim * hidden


def _mlp(shape: ModelShape, intermediate: int) -> int:
    biases = intermediate + shape.hidden if shape.bias else 0
    return (3 if shape.gated_mlp else 2) * shape.hidden * intermediate + biases
