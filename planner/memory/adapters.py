"""LoRA: how many parameters it trains, and what its layers keep for the backward pass."""

from __future__ import annotations

from collections.abc import Mapping

from planner.parameters import attention_width
from planner.runs import Lora
from planner.shapes import ModelShape


def linear_sizes(shape: ModelShape) -> Mapping[str, tuple[int, int]]:
    """(inputs, outputs) of the linear layers that a LoRA can adapt, by their short names."""
    hidden, query, key_value = shape.hidden, attention_width(shape), shape.kv_heads * shape.head_dim
    intermediate = shape.experts.intermediate if shape.experts else shape.intermediate
    sizes = {
        "q": (hidden, query),
        "k": (hidden, key_value),
        "v": (hidden, key_value),
        "o": (query, hidden),
        "up": (hidden, intermediate),
        "down": (intermediate, hidden),
        "head": (hidden, shape.vocab),
        "embed": (shape.vocab, hidden),
    }
    return {**sizes, "gate": (hidden, intermediate)} if shape.gated_mlp else sizes


def adapter_parameters(shape: ModelShape, lora: Lora) -> int:
    """Two matrices of the rank for each adapted layer; the layers trained whole beside them are not in it."""
    sizes = linear_sizes(shape)
    total = 0
    for name in lora.targets:
        if name in sizes:
            copies = 1 if name in {"head", "embed"} else shape.layers
            total += copies * lora.rank * sum(sizes[name])
    return total


def whole_parameters(shape: ModelShape, lora: Lora) -> int:
    """Of layers that are trained whole beside the adapters."""
    sizes = linear_sizes(shape)
    return sum(sizes[name][0] * sizes[name][1] for name in lora.trained_whole)
