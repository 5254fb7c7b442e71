"""Time and cost of a whole run: what is around its steps."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.models import models
from planner.runs import Layout, Lora
from planner.speed.training import training_speed
from planner.speed.whole_run import Machine, Plan, checkpoint_bytes, whole_run
from tests.planner.speed_runs import H100, training

RUN = training(layout=Layout(data=16, zero_stage=3), engine="fsdp")
SPEED = training_speed(RUN, H100)
FAST = Machine(read_bandwidth=2e9, write_bandwidth=1e9, internet_bandwidth=1e9, loader_cores=32)
PLAN = Plan(tokens=1_000_000_000, weights_are_there=True)


def test_steps_cover_every_token_of_every_epoch() -> None:
    whole = whole_run(RUN, SPEED, replace(PLAN, epochs=2.5), FAST)
    assert whole.steps == -(-2_500_000_000 // (16 * 8 * 4096))
    assert whole.time.term("steps").expected == pytest.approx(whole.steps * SPEED.step.expected)


def test_data_that_arrives_in_time_costs_nothing() -> None:
    term = whole_run(RUN, SPEED, PLAN, FAST).time.term("data")
    assert term.expected == 0
    assert term.hidden > 0


def test_a_slow_disk_starves_the_gpus() -> None:
    slow = replace(FAST, read_bandwidth=1e5)
    whole = whole_run(RUN, SPEED, PLAN, slow)
    # Two machines, each reads half.
    assert whole.time.term("data").expected + whole.time.term("steps").expected == pytest.approx(
        whole.steps * SPEED.tokens_per_step * 4 / 2 / 1e5
    )


def test_few_cores_cannot_turn_text_into_tokens_fast_enough() -> None:
    small = replace(RUN, shape=models()["Qwen/Qwen2.5-0.5B"].shape)
    speed, plan = training_speed(small, H100), replace(PLAN, tokenized=False)
    assert whole_run(small, speed, plan, replace(FAST, loader_cores=1)).time.term("data").expected > 0
    assert whole_run(small, speed, plan, FAST).time.term("data").expected == 0


def test_checkpoints_hold_what_is_trained() -> None:
    assert checkpoint_bytes(RUN) == pytest.approx(14 * 8.03e9, rel=0.01)
    lora = replace(RUN, method="lora", lora=Lora(16, ("q", "v")))
    assert checkpoint_bytes(lora) < checkpoint_bytes(RUN) / 500


def test_checkpointing_more_often_costs_in_proportion() -> None:
    every = [
        whole_run(RUN, SPEED, replace(PLAN, checkpoint_steps=steps), FAST).time.term("checkpoints").expected
        for steps in (None, 1000, 100)
    ]
    count = 1_000_000_000 // (16 * 8 * 4096) + 1
    assert every[1] == pytest.approx((1 + count // 1000) * every[0])
    assert every[2] == pytest.approx((1 + count // 100) * every[0])


def test_the_way_to_the_internet_shows_in_the_start() -> None:
    absent = replace(PLAN, weights_are_there=False)
    near, far = (
        whole_run(RUN, SPEED, absent, replace(FAST, internet_bandwidth=rate)).time.term("start").expected
        for rate in (1e9, 1e7)
    )
    assert far - near == pytest.approx(16.06e9 * (1 / 1e7 - 1 / 1e9), rel=0.01)


def test_cost_is_exact_money_of_the_hours() -> None:
    whole = whole_run(RUN, SPEED, PLAN, FAST)
    low, expected, high = whole.cost(Decimal("49.60"))
    assert isinstance(expected, Decimal)
    assert low < expected < high
    assert float(expected) == pytest.approx(49.6 * whole.time.expected / 3600)


@settings(max_examples=60, deadline=None)
@given(tokens=st.integers(1, 10**12), more=st.integers(0, 10**12), epochs=st.floats(0.1, 10))
def test_more_tokens_never_cost_less(tokens: int, more: int, epochs: float) -> None:
    few, many = (
        whole_run(RUN, SPEED, replace(PLAN, tokens=count, epochs=epochs), FAST) for count in (tokens, tokens + more)
    )
    assert few.cost(Decimal(10))[1] <= many.cost(Decimal(10))[1]


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"epochs": 0.0}])
def test_nothing_to_train_on_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="tokens and epochs"):
        whole_run(RUN, SPEED, replace(PLAN, **wrong), FAST)
