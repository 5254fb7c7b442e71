"""Floating-point operations of known models."""

from __future__ import annotations

import pytest

from planner.catalogue.models import models
from planner.parameters import count_parameters
from planner.runs import Lora
from planner.shapes import ModelShape, SlidingWindow
from planner.speed.flops import (
    attention_flops,
    attention_matrices,
    cached_attention_flops,
    forward_flops,
    layer_kinds,
    mlp_matrices,
    model_flops_per_token,
    routed_matrices,
)
from planner.speed.traffic import adapted_matrices
from tests.planner.speed_runs import LLAMA_8B, MIXTURE

GPT = ModelShape("gpt", 12, 768, 12, 12, 64, 3072, 50257, tied_embeddings=True, gated_mlp=False)


def test_matrices_of_a_layer_are_its_parameters() -> None:
    for model in models().values():
        shape = model.shape
        dense, expert = layer_kinds(shape)
        counts = count_parameters(shape)
        if dense and not shape.bias and not shape.qkv_bias:
            weights = sum(matrix.elements for matrix in (*attention_matrices(shape), *mlp_matrices(shape)))
            # Parameters also hold the norms inside latent attention.
            assert weights == pytest.approx(counts.attention + counts.mlp, rel=1e-3), model.id
        if expert and shape.experts and not shape.bias:
            active = sum(matrix.elements for matrix in routed_matrices(shape))
            assert active == counts.routed * shape.experts.active // shape.experts.count, model.id


def test_a_trained_token_costs_six_times_the_weights_that_multiply() -> None:
    weights = count_parameters(LLAMA_8B).total - count_parameters(LLAMA_8B).embedding
    without_attention = 3 * forward_flops(LLAMA_8B, 4096).matrices
    assert without_attention == pytest.approx(6 * weights, rel=1e-3)


def test_square_attention_is_twelve_l_h_s_a_token() -> None:
    both = model_flops_per_token(GPT, 2048) - 3 * forward_flops(GPT, 2048).matrices
    assert both == pytest.approx(12 * 12 * 768 * 2048)


def test_a_tied_head_still_multiplies() -> None:
    assert forward_flops(GPT, 1).head == 2 * 768 * 50257


def test_causal_attention_counts_the_pairs_below_the_diagonal() -> None:
    square, causal = (attention_flops(GPT, 2048, count=count) for count in ("square", "causal"))
    assert causal / square == pytest.approx(2049 / 4096)


def test_a_window_bounds_what_a_token_meets() -> None:
    windowed = ModelShape("w", 2, 64, 2, 2, 32, 128, 100, sliding=SlidingWindow(window=16))
    full = ModelShape("f", 2, 64, 2, 2, 32, 128, 100)
    assert attention_flops(windowed, 16) == attention_flops(full, 16)
    assert attention_flops(windowed, 256) < attention_flops(full, 256) / 7
    assert cached_attention_flops(windowed, 1000) == cached_attention_flops(full, 16)


def test_a_mixture_multiplies_only_its_active_experts() -> None:
    counts = count_parameters(MIXTURE)
    active = forward_flops(MIXTURE, 1).matrices / 2
    assert active == pytest.approx(counts.active - counts.embedding, rel=1e-2)
    assert active < counts.total / 8


def test_adapters_sit_on_the_named_matrices() -> None:
    adapted = adapted_matrices(LLAMA_8B, Lora(8, ("q", "down")))
    assert [(matrix.name, matrix.inputs, matrix.outputs) for matrix in adapted] == [
        ("q", 4096, 4096),
        ("down", 14336, 4096),
    ]
