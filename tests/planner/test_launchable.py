"""The choice offers only what some launcher starts, whatever method, optimizer and type are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.choice.launchable import is_launchable
from planner.choice.training import TrainingOption
from planner.plan import serving_plan, training_plan
from planner.runs import Lora
from planner.wishes import Market, ServingWish, TrainingWish

LORA = Lora(16, ("q", "k", "v", "o", "gate", "up", "down"))
FULL = TrainingWish(
    models()["meta-llama/Meta-Llama-3.1-8B"].shape,
    "full",
    sequence_length=2048,
    global_batch=64,
    samples=20_000,
    epochs=3,
    tokens_per_sample=600,
)
ADAPTER = replace(FULL, method="lora", lora=LORA, master_weights=False)
QUANTIZED = replace(ADAPTER, method="qlora", weight_format="nf4-dq")
SEVENTY_B = models()["meta-llama/Meta-Llama-3.1-70B"].shape
A100 = Market(gpu_ids=("a100-sxm-80",))


def options_of(wish: TrainingWish, market: Market) -> list[TrainingOption]:
    plan = training_plan(wish, market)
    return [*plan.by_gpu, *plan.layouts]


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adamw-8bit"},
        {"optimizer": "adafactor"},
        {"optimizer": "muon"},
        {"compute_dtype": "fp32", "weight_format": "fp32"},
        {"logits": "chunked"},
        {"sequence_length": 65_536},
    ],
)
def test_a_full_run_has_a_launcher_in_every_layout(changes: dict[str, Any]) -> None:
    found = options_of(replace(FULL, **changes), A100)
    assert found
    assert all(is_launchable(option.run) for option in found)


@pytest.mark.parametrize("wish", [ADAPTER, QUANTIZED])
@pytest.mark.parametrize("optimizer", ["adamw", "adamw-8bit", "adamw-8bit-paged", "adafactor", "sgd"])
def test_adapters_have_one_too(wish: TrainingWish, optimizer: Any) -> None:
    found = options_of(replace(wish, optimizer=optimizer), A100)
    assert found
    assert all(is_launchable(option.run) for option in found)


def test_what_nothing_trains_is_left_out_with_the_reason() -> None:
    plan = training_plan(replace(ADAPTER, optimizer="muon"), A100)
    assert plan.best is None
    assert [left.why.key for left in plan.left_out] == ["unsuitable.no_layout"]


def test_four_bits_are_not_split_over_cards() -> None:
    small = Market(gpu_ids=("rtx-4090-24",), price_kinds=("community",))
    assert training_plan(replace(QUANTIZED, shape=SEVENTY_B), small).best is None


def test_the_optimizer_moves_to_the_host_where_nothing_else_fits() -> None:
    plan = training_plan(FULL, replace(A100, most_gpus=1))
    assert plan.best is not None
    assert (plan.best.run.optimizer_offload, plan.best.run.parameter_offload, plan.best.run.engine) == (
        True,
        False,
        "deepspeed",
    )
    [memory] = [need for need in plan.host if need.key == "memory"]
    assert memory.why.key == "host.memory.offload"
    assert is_launchable(plan.best.run)


def test_the_weights_follow_where_that_is_not_enough() -> None:
    wider = replace(FULL, shape=models()["meta-llama/Llama-2-13b-hf"].shape)
    plan = training_plan(wider, Market(gpu_ids=("rtx-4090-24",), most_gpus=1, price_kinds=("community",)))
    assert plan.best is not None
    assert (plan.best.run.parameter_offload, plan.best.run.layout.zero_stage) == (True, 3)
    assert "parameter_offload" in {term.key for term in plan.best.speed.step.terms}


def test_nothing_is_moved_where_it_fits_without_and_the_saved_cards_are_told() -> None:
    plan = training_plan(FULL, A100)
    assert not any(option.run.optimizer_offload for option in plan.layouts)
    assert "whatif.offload.cards" in {said.key for said in plan.what_ifs}


def test_what_ifs_ask_no_card_for_a_type_that_it_lacks() -> None:
    chat = ServingWish(SEVENTY_B, concurrency=32, prompt_tokens=2048, output_tokens=512)
    plan = serving_plan(chat, A100)
    assert gpus()["a100-sxm-80"].fp8 is None
    assert "whatif.fp8_weights.cards" not in {said.key for said in plan.what_ifs}


def test_hosts_of_a_marketplace_make_no_cluster() -> None:
    market = Market(gpu_ids=("h100-sxm-80",), price_kinds=("on-demand", "community"))
    for option in options_of(replace(FULL, shape=SEVENTY_B), market):
        assert option.gpus <= 8 or option.price is None or option.price.kind != "community"
