"""Which layouts are offered: what has to divide, divides; tensor parallelism stays inside its domain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalogue.models import models
from planner.choice.layouts import serving_layouts, tensor_sizes, training_layouts
from planner.runs import Layout

LLAMA = models()["meta-llama/Meta-Llama-3-70B"].shape
QWEN = models()["Qwen/Qwen2.5-0.5B"].shape
MIXTRAL = models()["mistralai/Mixtral-8x7B-v0.1"].shape


def layouts(
    shape: object = LLAMA, *, gpus: int = 16, batch: int = 64, length: int = 4096, method: str = "full"
) -> list[Layout]:
    found = training_layouts(
        shape,  # type: ignore[arg-type]
        method=method,  # type: ignore[arg-type]
        sequence_length=length,
        global_batch=batch,
        gpus=gpus,
        domain=8,
    )
    return list(found)


def test_every_layout_uses_exactly_the_gpus() -> None:
    for gpus in (1, 2, 8, 16, 64):
        assert {layout.gpus for layout in layouts(gpus=gpus)} <= {gpus}


def test_the_simplest_comes_first_and_the_pipeline_last() -> None:
    found = layouts()
    assert found[0] == Layout(data=16)
    assert [layout.zero_stage for layout in found[:4]] == [0, 1, 2, 3]
    assert found[-1].pipeline > 1


def test_tensor_parallelism_stays_inside_the_domain() -> None:
    assert max(layout.tensor for layout in layouts(gpus=64)) == 8


def test_fourteen_heads_cannot_be_split_by_four() -> None:
    assert tensor_sizes(QWEN, most=8) == [1, 2]


def test_an_odd_vocabulary_keeps_the_model_whole() -> None:
    assert tensor_sizes(replace(LLAMA, vocab=50_257), most=8) == [1]


def test_a_pipeline_needs_as_many_micro_batches_as_stages() -> None:
    for layout in layouts(gpus=64, batch=64):
        assert 64 // layout.data >= layout.pipeline


def test_no_more_replicas_than_sequences() -> None:
    assert all(layout.data <= 4 for layout in layouts(gpus=16, batch=4))


def test_long_sequences_are_split_too() -> None:
    assert not any(layout.context > 1 for layout in layouts(length=8192))
    cut = [layout for layout in layouts(length=131_072) if layout.context > 1]
    assert {layout.tensor for layout in cut} >= {1, 2}
    assert {layout.zero_stage for layout in cut} == {1}
    assert all(layout.context == 1 for layout in layouts(length=131_072, method="lora"))


def test_adapters_are_trained_without_splitting_layers() -> None:
    assert {(layout.tensor, layout.pipeline) for layout in layouts(method="lora")} == {(1, 1)}


def test_experts_are_spread_over_the_replicas() -> None:
    assert {layout.expert for layout in layouts(MIXTRAL, gpus=64)} >= {1, 8}


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(1, [(1, 1)]), (8, [(8, 1), (4, 2), (2, 4), (1, 8)]), (16, [(8, 2), (4, 4), (2, 8), (1, 16)])],
)
def test_serving_splits_layers_before_it_lines_them_up(gpus: int, expected: list[tuple[int, int]]) -> None:
    assert [(layout.tensor, layout.pipeline) for layout in serving_layouts(LLAMA, gpus=gpus, domain=8)] == expected
