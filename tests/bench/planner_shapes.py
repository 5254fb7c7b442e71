"""The model of a measured row: of the catalogue, or written out as JSON in the row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from planner.catalogue.models import models
from planner.shapes import Experts, LatentAttention, ModelShape

NEEDED = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate")


class CannotExpressError(ValueError):
    """The row says something that no run can hold; the message is the reason."""


def shape(cells: Mapping[str, str]) -> ModelShape:
    if cells["model_id"]:
        if cells["model_id"] not in models():
            raise CannotExpressError(f"model {cells['model_id']} not in the catalogue")
        return models()[cells["model_id"]].shape
    written = _written(cells)
    if "hybrid_pattern" in written:
        raise CannotExpressError("hybrid of state-space and attention layers")
    if not written.get("vocab"):
        raise CannotExpressError("vocabulary not stated")
    layers = written["layers"] + written.get("cross_attention_layers", 0)
    return ModelShape(
        name=cells["model"],
        layers=layers,
        hidden=written["hidden"],
        heads=written["heads"],
        kv_heads=written["kv_heads"],
        head_dim=written["head_dim"],
        intermediate=written["intermediate"],
        vocab=written.get("vocab_padded") or written["vocab"],
        tied_embeddings=written.get("tied", False),
        max_positions=written.get("max_positions", 0),
        gated_mlp=written.get("swiglu", True),
        bias=written.get("bias", False),
        layer_norm=written.get("norm") == "layernorm",
        positions=written.get("pos", "rope"),
        experts=_experts(written, layers),
        latent=_latent(written.get("mla")),
        prediction_layers=written.get("mtp_layers", 0),
    )


def _written(cells: Mapping[str, str]) -> Mapping[str, Any]:
    written = json.loads(cells["shape"] or "{}")
    missing = [name for name in NEEDED if written.get(name) is None and "hybrid_pattern" not in written]
    if missing:
        raise CannotExpressError(f"shape without {' '.join(missing)}")
    return cast(Mapping[str, Any], written)


def _experts(written: Mapping[str, Any], layers: int) -> Experts | None:
    if not written.get("experts"):
        return None
    return Experts(
        count=written["experts"],
        active=written["topk"],
        intermediate=written["moe_intermediate"],
        shared_intermediate=written.get("shared_intermediate") or 0,
        dense_layers=layers - written.get("moe_layers", layers),
    )


def _latent(ranks: Mapping[str, int] | None) -> LatentAttention | None:
    if not ranks:
        return None
    return LatentAttention(
        query_rank=ranks["q_lora"] or None,
        kv_rank=ranks["kv_lora"],
        rope_dim=ranks["rope"],
        nope_dim=ranks["nope"],
        value_dim=ranks["v"],
    )
