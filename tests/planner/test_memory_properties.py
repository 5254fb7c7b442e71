"""What holds of every memory estimate, whatever is asked: ranges that hold the expected value, and more work that never needs less."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.memory.serving import serving_memory
from planner.memory.training import training_memory
from planner.runs import (
    Attention,
    Checkpointing,
    Layout,
    Logits,
    Lora,
    Optimizer,
    ServingEngine,
    ServingRun,
    TrainingEngine,
    TrainingRun,
)

SHAPES = st.sampled_from([model.shape for model in models().values()])
LAYOUTS = st.builds(
    Layout,
    data=st.sampled_from([1, 2, 8]),
    tensor=st.sampled_from([1, 2, 8]),
    pipeline=st.sampled_from([1, 2, 4]),
    virtual_pipeline=st.sampled_from([1, 2]),
    context=st.sampled_from([1, 2]),
    zero_stage=st.sampled_from([0, 1, 2, 3]),
    sequence_parallel=st.booleans(),
)
LORAS = st.sampled_from(
    [None, Lora(8, ("q", "v")), Lora(64, ("q", "k", "v", "o", "gate", "up", "down", "head"), ("embed",))]
)
RUNS = st.builds(
    TrainingRun,
    shape=SHAPES,
    method=st.just("full"),
    engine=st.sampled_from(get_args(TrainingEngine)),
    layout=LAYOUTS,
    sequence_length=st.sampled_from([1, 512, 131072]),
    micro_batch=st.sampled_from([1, 7]),
    gradient_accumulation=st.sampled_from([1, 16]),
    weight_format=st.sampled_from(["bf16", "nf4", "gptq-int4"]),
    master_weights=st.booleans(),
    optimizer=st.sampled_from(get_args(Optimizer)),
    lora=LORAS,
    checkpointing=st.sampled_from(get_args(Checkpointing)),
    attention=st.sampled_from(get_args(Attention)),
    logits=st.sampled_from(get_args(Logits)),
    compiled=st.booleans(),
    optimizer_offload=st.booleans(),
    activation_offload=st.booleans(),
    optimizer_in_backward=st.booleans(),
)


@given(RUNS)
@settings(max_examples=150, deadline=None)
def test_a_training_estimate_is_a_range_of_known_bytes(run: TrainingRun) -> None:
    estimate = training_memory(run, gpus()["h100-sxm-80"])
    assert estimate.terms
    for term in estimate.terms:
        assert 0 <= term.low <= term.expected <= term.high < 1e18, term
    assert len({term.key for term in estimate.terms}) == len(estimate.terms)


@given(RUNS)
@settings(max_examples=100, deadline=None)
def test_longer_sequences_and_bigger_batches_never_need_less(run: TrainingRun) -> None:
    needed = training_memory(run).expected()
    assert training_memory(replace(run, sequence_length=2 * run.sequence_length)).expected() >= needed * 0.999999
    assert training_memory(replace(run, micro_batch=2 * run.micro_batch)).expected() >= needed * 0.999999


@pytest.mark.parametrize(
    "switch", [{"checkpointing": "full"}, {"optimizer_offload": True}, {"activation_offload": True}]
)
@given(run=RUNS)
@settings(max_examples=60, deadline=None)
def test_a_switch_that_saves_never_costs(run: TrainingRun, switch: dict[str, object]) -> None:
    saving = replace(run, **switch)  # type: ignore[arg-type]
    plain = replace(run, checkpointing="none", optimizer_offload=False, activation_offload=False)
    assert training_memory(saving).expected() <= training_memory(plain).expected() * 1.000001


@given(
    run=st.builds(
        ServingRun,
        shape=SHAPES,
        engine=st.sampled_from(get_args(ServingEngine)),
        layout=LAYOUTS,
        concurrency=st.sampled_from([1, 64]),
        prompt_tokens=st.sampled_from([0, 1, 4096]),
        output_tokens=st.sampled_from([1, 1000]),
        weight_format=st.sampled_from(["bf16", "fp8", "awq-int4"]),
        engine_version=st.sampled_from(["", "0.6.4", "0.18.0", "V1 2025-01", "nightly"]),
    ),
    card=st.sampled_from(list(gpus().values())),
)
@settings(max_examples=150, deadline=None)
def test_a_servers_pool_holds_what_it_says(run: ServingRun, card: object) -> None:
    memory = serving_memory(run, card)  # type: ignore[arg-type]
    for term in memory.estimate.terms:
        assert 0 <= term.low <= term.expected <= term.high < 1e18, term
    assert memory.tokens >= 0
    assert memory.requests * memory.needed_bytes / run.concurrency <= max(0.0, memory.pool_bytes)
