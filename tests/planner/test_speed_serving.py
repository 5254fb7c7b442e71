"""The times of serving: first token, each further one, throughput."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogue.gpus import gpus
from planner.catalogue.links import Network, network_port, nvlink, pcie, usual_network
from planner.catalogue.models import models
from planner.runs import Layout, ServingEngine
from planner.speed.cards import NoRateError
from planner.speed.decode import cache_bytes, touched_experts, weight_bytes
from planner.speed.serving import serving_speed
from tests.planner.speed_runs import A100, H100, MIXTURE, faster, serving

engines = st.sampled_from(("vllm", "tensorrt-llm", "transformers", "sglang", "litgpt"))


@settings(max_examples=60, deadline=None)
@given(engine=engines, concurrency=st.integers(1, 512), factor=st.floats(1, 20), tensor=st.sampled_from((1, 2, 8)))
def test_a_faster_card_is_never_slower(engine: ServingEngine, concurrency: int, factor: float, tensor: int) -> None:
    run = serving(engine=engine, concurrency=concurrency, layout=Layout(tensor=tensor))
    slow, fast = (serving_speed(run, gpu, usual_network(A100)) for gpu in (A100, faster(A100, factor)))
    assert fast.output_tokens_per_second >= slow.output_tokens_per_second * (1 - 1e-9)
    assert fast.first_token.expected <= slow.first_token.expected


@settings(max_examples=60, deadline=None)
@given(concurrency=st.integers(1, 512), more=st.integers(0, 512))
def test_more_requests_are_slower_each_and_faster_together(concurrency: int, more: int) -> None:
    few, many = (serving_speed(serving(concurrency=concurrency + extra), H100) for extra in (0, more))
    assert many.token.expected >= few.token.expected
    assert many.output_tokens_per_second >= few.output_tokens_per_second * (1 - 1e-9)


def test_one_request_reads_every_weight_for_each_token() -> None:
    run = serving(concurrency=1, prompt_tokens=1)
    speed = serving_speed(run, A100)
    read = weight_bytes(run, 1)
    assert read == pytest.approx(2 * 7.5e9, rel=0.02)
    assert speed.token.expected > read / 2.039e12


def test_four_bits_read_a_quarter() -> None:
    plain, small = (weight_bytes(serving(weight_format=how), 1) for how in ("bf16", "awq-int4"))
    assert 0.25 < small / plain < 0.35


def test_a_batch_touches_more_experts_until_it_touches_all() -> None:
    assert touched_experts(128, 8, 1) == pytest.approx(8)
    assert 100 < touched_experts(128, 8, 32) < 128
    run = serving(shape=MIXTURE, concurrency=1)
    assert weight_bytes(run, 1) < weight_bytes(run, 64) / 5


def test_eager_engines_wait_for_their_host_with_one_request() -> None:
    run = serving(engine="transformers", engine_version="4.46", concurrency=1, prompt_tokens=1)
    small = replace(run, shape=models()["Qwen/Qwen2.5-0.5B"].shape)
    token = serving_speed(small, A100).token
    assert token.term("launches").expected > 0.9 * token.expected
    assert serving_speed(small, H100).token.expected == pytest.approx(token.expected, rel=0.01)


def test_a_constant_goes_with_the_engines_version() -> None:
    old, new = (serving_speed(serving(engine="tensorrt-llm", engine_version=it), H100).token for it in ("0.6.1", "1.0"))
    assert old.term("cache").expected > 2 * new.term("cache").expected


def test_tensor_parallelism_over_pcie_shows_in_the_first_token() -> None:
    run = serving(layout=Layout(tensor=8), prompt_tokens=8192, concurrency=1)
    fast = serving_speed(run, A100, Network(nvlink(A100) or pcie(A100), network_port("infiniband-200")))
    slow = serving_speed(run, A100, Network(pcie(A100), network_port("ethernet-25")))
    assert slow.first_token.expected > 2 * fast.first_token.expected


def test_replicas_multiply_throughput_and_leave_the_token_as_it_is() -> None:
    one = serving_speed(serving(concurrency=8), H100)
    four = serving_speed(serving(concurrency=32, layout=Layout(data=4)), H100)
    assert four.output_tokens_per_second == pytest.approx(4 * one.output_tokens_per_second)
    assert four.token.expected == one.token.expected


def test_ranges_hold_the_expected_value() -> None:
    speed = serving_speed(serving(), gpus()["l40s-48"])
    low, high = speed.output_tokens_per_second_range
    assert low < speed.output_tokens_per_second < high
    for term in (*speed.token.terms, *speed.prompts.terms):
        assert term.low <= term.expected <= term.high
        assert term.source
        assert term.formula


def test_latent_attention_reads_its_compressed_cache() -> None:
    deepseek = models()["deepseek-ai/DeepSeek-V3"].shape
    assert cache_bytes(serving(shape=deepseek, layout=Layout(tensor=8)), 1000) == 61 * 576 * 2 * 1000
    assert cache_bytes(serving(layout=Layout(pipeline=2)), 1000) == 131_072_000


def test_without_cuda_graphs_a_small_batch_waits_for_the_host() -> None:
    run = serving(concurrency=1, prompt_tokens=1, shape=models()["Qwen/Qwen2.5-0.5B"].shape)
    captured, eager = (serving_speed(replace(run, cuda_graphs=graphs), H100).token.expected for graphs in (True, False))
    assert eager > 2 * captured


def test_four_bit_arithmetic_beats_eight_where_there_is_any() -> None:
    run = serving(engine="tensorrt-llm", concurrency=512, prompt_tokens=4096, kv_dtype="fp8")
    b200 = gpus()["b200-sxm-180"]
    four, eight = (
        serving_speed(replace(run, weight_format=how, compute_dtype=how), b200).output_tokens_per_second
        for how in ("fp4", "fp8")
    )
    assert four > eight
    with pytest.raises(NoRateError, match="fp4"):
        serving_speed(replace(run, weight_format="fp4", compute_dtype="fp4"), H100)


def test_an_old_scheduler_shows_with_many_requests_only() -> None:
    old, new = (
        [serving_speed(serving(engine_version=version, concurrency=count), A100).token.expected for count in (1, 256)]
        for version in ("0.5.4", "0.6.2")
    )
    assert old[0] == pytest.approx(new[0], rel=0.02)
    assert old[1] > 1.5 * new[1]
