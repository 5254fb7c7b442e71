"""Models: models.csv as shapes, and checks that each row agrees with itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import get_args

from planner.catalogue.rows import Row, read_rows
from planner.shapes import Experts, LatentAttention, ModelShape, Positions, SlidingWindow


@dataclass(frozen=True, slots=True)
class Model:
    """`id` is the name on Hugging Face; `attention` in the words of the file, for people."""

    id: str
    shape: ModelShape
    attention: str
    # Bytes of a token in the cache with 16-bit elements, all layers, nothing split: the file's figure, which the shape must give too.
    cache_bytes_per_token: int
    parameters_from_shape: int
    source: str
    note: str


@cache
def models() -> Mapping[str, Model]:
    """By id, in the order of the file. Raises CatalogueError for a wrong row."""
    return {model.id: model for model in map(_model, read_rows("models.csv"))}


def _model(row: Row) -> Model:
    return Model(
        id=row.text("hf_id"),
        shape=_shape(row),
        attention=row.text("attention_kind"),
        cache_bytes_per_token=row.whole("kv_bytes_per_token_bf16"),
        parameters_from_shape=round(row.number_of("params_computed_b") * 1e9),
        source=row.text("source"),
        note=row.optional_text("notes"),
    )


def _shape(row: Row) -> ModelShape:
    positions = row.text("positions")
    if positions not in get_args(Positions):
        raise row.fault("positions", "way to give positions")
    heads, kv_heads = row.whole("heads"), row.whole("kv_heads")
    if heads % kv_heads:
        raise row.fault("kv_heads", f"divisor of the {heads} heads")
    return ModelShape(
        name=row.text("hf_id").partition("/")[2],
        layers=row.whole("layers"),
        hidden=row.whole("hidden"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=row.whole("head_dim"),
        intermediate=row.whole("intermediate"),
        vocab=row.whole("vocab"),
        tied_embeddings=row.flag("tied_embeddings"),
        max_positions=row.whole("max_positions"),
        gated_mlp=row.flag("gated_mlp"),
        bias=row.flag("bias"),
        qkv_bias=row.flag("qkv_bias"),
        layer_norm=row.flag("layer_norm"),
        positions=positions,  # type: ignore[arg-type]  # checked above
        experts=_experts(row),
        latent=_latent(row),
        sliding=_sliding(row),
        vision_parameters=round((row.number_or_none("vision_params_b") or 0) * 1e9),
        published_parameters=round(row.number_of("params_b") * 1e9),
        source=row.text("source"),
    )


def _experts(row: Row) -> Experts | None:
    if not row.optional_text("moe_experts"):
        return None
    experts = Experts(
        count=row.whole("moe_experts"),
        active=row.whole("moe_active"),
        intermediate=row.whole("moe_intermediate"),
        shared_intermediate=row.whole_or_none("moe_shared_intermediate") or 0,
        dense_layers=row.whole_or_none("moe_dense_layers") or 0,
    )
    if experts.active > experts.count:
        raise row.fault("moe_active", f"part of the {experts.count} experts")
    return experts


def _latent(row: Row) -> LatentAttention | None:
    if not row.optional_text("mla_kv_rank"):
        return None
    return LatentAttention(
        query_rank=row.whole_or_none("mla_query_rank"),
        kv_rank=row.whole("mla_kv_rank"),
        rope_dim=row.whole("mla_rope_dim"),
        nope_dim=row.whole("mla_nope_dim"),
        value_dim=row.whole("mla_value_dim"),
    )


def _sliding(row: Row) -> SlidingWindow | None:
    if not row.optional_text("sliding_window"):
        return None
    return SlidingWindow(
        window=row.whole("sliding_window"),
        local=row.whole("sliding_local"),
        full=row.whole_or_none("sliding_full") or 0,
    )
