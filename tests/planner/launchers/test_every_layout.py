"""Every layout that the choice comes up with is started by some launcher, for dense models, mixtures and latent attention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.choice.layouts import serving_layouts, training_layouts
from planner.choice.training import engine_of
from planner.launchers.base import Launcher, Order, Place, ServingOrder, TrainingOrder
from planner.launchers.registry import LAUNCHERS
from planner.runs import Layout, Method, ServingRun, TrainingRun

MODELS = (
    "meta-llama/Llama-2-7b-hf",
    "Qwen/Qwen2.5-72B",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "facebook/opt-13b",
)


def place(count: int) -> Place:
    hosts = tuple(f"node-{number}" for number in range(max(1, count // 8)))
    return Place(gpus()["h100-sxm-80"], min(count, 8), hosts)


def fitting(order: Order) -> list[Launcher]:
    """Those that start a run; what they write is written, so that no layout makes one fail."""
    found = [each for key, each in LAUNCHERS.items() if key not in {"export", "quantize"} and each.unfit(order) is None]
    assert all(each.write(order).commands for each in found)
    return found


def training_orders(name: str, method: Method) -> Iterator[TrainingOrder]:
    shape = models()[name].shape
    for count in (1, 2, 8, 64):
        for layout in training_layouts(
            shape, method=method, sequence_length=4096, global_batch=64, gpus=count, domain=8
        ):
            run = TrainingRun(shape, method, engine_of(layout), layout, 4096, 1, checkpointing="full")
            yield TrainingOrder(run, place(count), name, "data.jsonl")


def known_gap(layout: Layout, method: Method) -> bool:
    """Weights in four bits cannot be split by any of these launchers: their sizes and scales belong together."""
    return method == "qlora" and layout.zero_stage == 3


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
@pytest.mark.parametrize("name", MODELS)
def test_every_layout_for_training_is_started_by_some_launcher(name, method) -> None:
    orders = list(training_orders(name, method))
    assert orders
    for order in orders:
        assert bool(fitting(order)) is not known_gap(order.run.layout, method), order.run.layout


@pytest.mark.parametrize("name", MODELS)
def test_every_layout_for_serving_is_started_by_some_launcher(name) -> None:
    shape = models()[name].shape
    for count in (1, 2, 8, 16):
        for layout in serving_layouts(shape, gpus=count, domain=8):
            run = ServingRun(shape, "vllm", layout, concurrency=8, prompt_tokens=1000, output_tokens=200)
            assert fitting(ServingOrder(run, place(count), name)), layout
