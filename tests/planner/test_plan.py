"""A plan from end to end: the simplest thing that fits comes first, and everything else says why it does not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.plan import Chosen, serving_plan, training_plan
from planner.runs import Lora
from planner.wishes import Market, ServingWish, TrainingWish

EIGHT_B = models()["meta-llama/Meta-Llama-3.1-8B"].shape
SEVENTY_B = models()["meta-llama/Meta-Llama-3.1-70B"].shape
ADAPTER = TrainingWish(
    EIGHT_B,
    "qlora",
    sequence_length=2048,
    global_batch=16,
    samples=10_000,
    epochs=3,
    tokens_per_sample=600,
    lora=Lora(16, ("q", "k", "v", "o")),
    weight_format="nf4-dq",
    master_weights=False,
)
FULL = TrainingWish(
    SEVENTY_B, "full", sequence_length=4096, global_batch=128, samples=50_000, epochs=2, tokens_per_sample=1000
)
CHAT = ServingWish(SEVENTY_B, concurrency=32, prompt_tokens=2048, output_tokens=512)
ONE_CARD = Market(gpu_ids=("rtx-4090-24",), price_kinds=("on-demand", "community"))


def test_an_adapter_of_eight_billion_fits_on_one_consumer_card() -> None:
    plan = training_plan(ADAPTER, ONE_CARD)
    assert plan.best is not None
    assert (plan.best.gpus, plan.best.fit) == (1, "fits")
    assert plan.best.memory.high() <= gpus()["rtx-4090-24"].memory_bytes
    verdicts = {step.key: step.verdict for step in plan.ladder}
    assert verdicts["data"] == verdicts["pipeline"] == "not_needed"


def test_seventy_billion_in_full_need_many_cards_and_say_what_would_save_some() -> None:
    plan = training_plan(FULL, Market(gpu_ids=("h100-sxm-80",)))
    assert plan.best is not None
    assert plan.best.gpus >= 16
    assert {step.key: step.verdict for step in plan.ladder}["single"] == "impossible"
    assert "whatif.lora.cards" in {said.key for said in plan.what_ifs}
    assert "node_network" in {need.key for need in plan.host}


def test_what_does_not_fit_says_how_much_it_would_take() -> None:
    plan = training_plan(FULL, Market(gpu_ids=("t4-16",), most_gpus=8))
    assert plan.best is None
    [left] = plan.left_out
    assert left.why.key == "unsuitable.memory"
    assert float(str(left.why.values["needed_gib"])) > 16


@pytest.mark.parametrize("priority", ["money", "time", "simplicity"])
def test_each_priority_puts_its_own_first(priority: str) -> None:
    plan = training_plan(ADAPTER, replace(Market(), priority=priority))  # type: ignore[arg-type]
    first, others = plan.by_gpu[0], [option for option in plan.by_gpu[1:] if option.fit == "fits"]
    if priority == "money":
        costs = [option.cost for option in others if option.cost is not None]
        assert first.cost is not None
        assert first.cost <= min(costs)
    elif priority == "time":
        assert first.hours <= min(option.hours for option in others)
    else:
        assert first.gpus == 1


def test_a_deadline_goes_before_the_price() -> None:
    cheap = training_plan(ADAPTER, Market(gpu_ids=("h100-sxm-80",))).best
    assert cheap is not None
    hurried = training_plan(replace(ADAPTER, deadline_hours=cheap.hours / 2), Market(gpu_ids=("h100-sxm-80",))).best
    assert hurried is not None
    assert hurried.hours <= cheap.hours / 2
    assert hurried.gpus > cheap.gpus


def test_the_price_of_the_team_goes_before_the_table() -> None:
    market = Market(gpu_ids=("h100-sxm-80",), team_prices=(("h100-sxm-80", Decimal("1.11")),))
    best = training_plan(FULL, market).best
    assert best is not None
    assert best.price is not None
    assert (best.price.per_gpu_hour, best.price.observed_on) == (Decimal("1.11"), None)


def test_a_row_of_the_table_can_be_picked() -> None:
    plan = training_plan(ADAPTER, Market(), Chosen("l40s-48", 2))
    assert plan.best is not None
    assert (plan.best.gpu.id, plan.best.gpus) == ("l40s-48", 2)


def test_serving_holds_the_cache_of_everybody() -> None:
    plan = serving_plan(CHAT, Market())
    assert plan.best is not None
    assert plan.best.memory.holds_the_load
    assert plan.best.replicas * plan.best.memory.requests >= CHAT.concurrency
    assert plan.engine.engine == "vllm"


def test_four_bits_only_with_an_evaluation_and_low_latency_by_compiling() -> None:
    four_bit = serving_plan(replace(CHAT, weight_format="awq-int4"), ONE_CARD)
    assert "engine.int4_needs_evaluation" in {said.key for said in four_bit.engine.reasons}
    hurried = serving_plan(replace(CHAT, seconds_per_token=0.01), ONE_CARD)
    assert hurried.engine.engine == "tensorrt-llm"


def test_old_cards_compute_in_fp16_and_are_left_out_where_the_engine_does_not_know_them() -> None:
    assert {left.why.key for left in serving_plan(CHAT, Market(gpu_ids=("v100-sxm2-32",))).left_out} == {
        "unsuitable.engine"
    }
    best = training_plan(ADAPTER, Market(gpu_ids=("v100-sxm2-32",))).best
    assert best is not None
    assert (best.run.compute_dtype, best.run.attention) == ("fp16", "sdpa")


def test_an_unknown_price_keeps_no_budget() -> None:
    plan = training_plan(replace(ADAPTER, budget=Decimal("0.01")), Market())
    assert plan.best is not None
    assert plan.best.cost is not None
