"""Which servers are offered first, and what is said of wishes that no card fulfils."""

from __future__ import annotations

from dataclasses import replace

from planner.catalogue.models import models
from planner.plan import serving_plan
from planner.wishes import Market, ServingWish

CHAT = ServingWish(
    models()["meta-llama/Meta-Llama-3.1-70B"].shape, concurrency=16, prompt_tokens=1000, output_tokens=300
)


def test_the_cheapest_is_what_costs_least_for_what_it_answers() -> None:
    plan = serving_plan(CHAT, Market())
    costs = [option.cost_per_million_tokens for option in plan.by_gpu if option.fit == "fits"]
    assert plan.best is not None
    assert plan.best.cost_per_million_tokens == min(cost for cost in costs if cost is not None)


def test_nvlink_splits_layers_and_lines_up_nothing() -> None:
    plan = serving_plan(CHAT, Market(gpu_ids=("h100-sxm-80",)))
    assert {option.run.layout.pipeline for option in plan.layouts if option.run.layout.gpus <= 8} == {1}


def test_a_latency_that_no_number_of_copies_reaches_buys_none() -> None:
    market = Market(gpu_ids=("h100-sxm-80",))
    least, impossible = (
        serving_plan(CHAT, market).best,
        serving_plan(replace(CHAT, seconds_per_token=1e-4), market).best,
    )
    assert least is not None
    assert impossible is not None
    assert not impossible.meets_targets
    assert impossible.replicas == least.replicas


def test_a_context_beyond_the_positions_of_the_model_is_said() -> None:
    long = serving_plan(replace(CHAT, prompt_tokens=200_000), Market(gpu_ids=("b200-sxm-180",)))
    assert "method.beyond_positions" in {said.key for said in long.engine.reasons}


def test_a_load_beyond_the_cards_is_told_from_a_model_beyond_them() -> None:
    market = Market(gpu_ids=("h100-sxm-80",), most_gpus=8)
    [load] = serving_plan(replace(CHAT, concurrency=100_000), market).left_out
    assert (load.why.key, load.why.values["most"]) == ("unsuitable.load", 8)
    [model] = serving_plan(CHAT, Market(gpu_ids=("t4-16",), most_gpus=4)).left_out
    assert model.why.key == "unsuitable.cache"
