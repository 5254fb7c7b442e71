"""The models of the catalogue: each row agrees with its own published size and with the cache it says it needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalogue.models import models
from planner.memory.faults import model_faults
from planner.parameters import count_parameters


@pytest.mark.parametrize("name", models())
def test_counted_parameters_agree_with_the_published_total(name: str) -> None:
    model = models()[name]
    counts = count_parameters(model.shape)
    assert counts.total - counts.vision == pytest.approx(model.parameters_from_shape, rel=4e-4)
    assert counts.total - counts.vision == pytest.approx(model.shape.published_parameters, rel=4e-3)


@pytest.mark.parametrize(
    ("name", "active_billions"),
    [("mistralai/Mixtral-8x7B-v0.1", 12.9), ("Qwen/Qwen3-30B-A3B", 3.3), ("deepseek-ai/DeepSeek-V3", 37.0)],
)
def test_active_parameters_are_those_a_token_meets(name: str, active_billions: float) -> None:
    counts = count_parameters(models()[name].shape)
    assert counts.active / 1e9 == pytest.approx(active_billions, rel=0.03)
    assert counts.active < counts.total


def test_a_shape_without_experts_is_wholly_active() -> None:
    counts = count_parameters(models()["meta-llama/Llama-2-7b-hf"].shape)
    assert counts.active == counts.total == 6_738_415_616


def test_the_windows_and_latent_ranks_are_structured() -> None:
    gemma, deepseek = models()["google/gemma-3-4b-it"].shape, models()["deepseek-ai/DeepSeek-V2-Lite"].shape
    assert gemma.sliding
    assert (gemma.sliding.local, gemma.sliding.full) == (5, 1)
    assert deepseek.latent
    assert deepseek.latent.query_rank is None


def test_a_row_that_disagrees_with_itself_is_named() -> None:
    assert list(model_faults()) == []
    model = models()["meta-llama/Llama-2-7b-hf"]
    wrong = replace(model, shape=replace(model.shape, layers=31), cache_bytes_per_token=model.cache_bytes_per_token)
    faults = list(model_faults([wrong]))
    assert len(faults) == 2
    assert "models.csv, meta-llama/Llama-2-7b-hf, params_b" in faults[0]
    assert "kv_bytes_per_token_bf16" in faults[1]
