"""Serving memory: the cache's identities from vLLM's logs, pools by engine and version, and what fits in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.models import models
from planner.memory.cache import sequence_bytes, token_cache, tokens_in_pool
from planner.memory.serving import ServingMemory, serving_memory
from planner.runs import Layout, ServingRun

GIB = 2**30
LLAMA_8B = models()["meta-llama/Meta-Llama-3.1-8B"].shape
VLLM = ServingRun(
    shape=LLAMA_8B,
    engine="vllm",
    engine_version="0.18.0",
    layout=Layout(),
    concurrency=8,
    prompt_tokens=1000,
    output_tokens=500,
)
H100 = gpus()["h100-sxm-80"]


def serving(model: str) -> ServingRun:
    return replace(VLLM, shape=models()[model].shape)


def terms(memory: ServingMemory) -> dict[str, float]:
    return {term.key: term.expected for term in memory.estimate.terms}


# Blocks of 16 tokens and the pool in GiB that vLLM logged for them.
LOGGED = [
    ("meta-llama/Meta-Llama-3.1-8B", 1952, 3.81),
    ("meta-llama/Meta-Llama-3.1-8B", 1478, 2.89),
    ("microsoft/phi-4", 14815, 45.21),
    ("Qwen/Qwen2.5-0.5B", 190100, 34.81),
    ("Qwen/Qwen2.5-0.5B", 12652, 2.32),
]


@pytest.mark.parametrize(("model", "blocks", "pool_gib"), LOGGED)
def test_a_pool_holds_the_tokens_that_were_logged(model: str, blocks: int, pool_gib: float) -> None:
    run = serving(model)
    block = 16 * token_cache(run.shape, run.layout, "bf16").bytes
    assert blocks * block / GIB == pytest.approx(pool_gib, abs=0.006)
    assert tokens_in_pool(run, blocks * block) == 16 * blocks
    assert tokens_in_pool(run, (blocks + 1) * block - 1) == 16 * blocks


@pytest.mark.parametrize("name", models())
def test_the_cache_of_a_token_is_the_catalogues(name: str) -> None:
    model = models()[name]
    assert token_cache(model.shape, Layout(), "bf16").bytes == pytest.approx(model.cache_bytes_per_token)


def test_tensor_parallelism_divides_heads_but_no_further_and_never_a_latent() -> None:
    shape, latent = LLAMA_8B, models()["deepseek-ai/DeepSeek-V2"].shape
    whole = token_cache(shape, Layout(), "bf16").bytes
    assert token_cache(shape, Layout(tensor=4), "bf16").bytes == whole / 4
    assert token_cache(shape, Layout(tensor=16), "bf16").bytes == whole / 8
    assert token_cache(latent, Layout(tensor=8), "bf16").bytes == token_cache(latent, Layout(), "bf16").bytes


def test_a_sliding_window_stops_growing_in_its_layers() -> None:
    run = serving("google/gemma-3-27b-it")
    short, long, longer = (sequence_bytes(run, tokens) for tokens in (1024, 8192, 15360))
    full_layers = token_cache(run.shape, run.layout, "bf16").everywhere
    assert long - short == longer - long == 7168 * full_layers


def test_half_the_bytes_hold_twice_the_tokens() -> None:
    pool = 10 * GIB
    assert tokens_in_pool(replace(VLLM, kv_dtype="fp8"), pool) == pytest.approx(2 * tokens_in_pool(VLLM, pool), abs=16)


def test_a_pool_is_what_the_share_of_the_card_leaves() -> None:
    """llm-d-planner: Qwen3-14B on one H100 at 0.95, vLLM 0.17 and 0.15."""
    run = replace(serving("Qwen/Qwen3-14B"), memory_utilization=0.95)
    newer = serving_memory(replace(run, engine_version="0.17.0"), H100)
    older = serving_memory(replace(run, engine_version="0.15.0"), H100)
    assert newer.pool_bytes / GIB == pytest.approx(45.34, rel=0.01)
    assert older.pool_bytes / GIB == pytest.approx(41.94, rel=0.01)


def test_a_sampler_without_a_sort_leaves_more_for_the_cache() -> None:
    peaks = [
        terms(serving_memory(replace(VLLM, engine_version=version), H100))["activation_peak"]
        for version in ("0.16", "0.17")
    ]
    assert peaks[0] > 2 * peaks[1]


def test_weights_of_quantized_models_keep_their_ends_in_16_bits() -> None:
    """Logged by vLLM 0.5.4 for Llama-3.1-8B: 14.99, GPTQ 5.38, AWQ 5.37 GiB."""
    sizes = {
        kind: terms(serving_memory(replace(VLLM, weight_format=kind), H100))["weights"] / GIB
        for kind in ("bf16", "gptq-int4")
    }
    assert sizes["bf16"] == pytest.approx(14.99, rel=0.01)
    assert sizes["gptq-int4"] == pytest.approx(5.37, rel=0.01)


def test_requests_are_whole_ones_that_fit() -> None:
    memory = serving_memory(VLLM, H100)
    assert memory.requests == int(memory.pool_bytes // sequence_bytes(VLLM, 1500))
    assert memory.holds_the_load
    crowded = serving_memory(replace(VLLM, concurrency=memory.requests + 1), H100)
    assert not crowded.holds_the_load


def test_a_model_that_does_not_fit_has_no_tokens() -> None:
    memory = serving_memory(serving("meta-llama/Meta-Llama-3.1-70B"), gpus()["rtx-4090-24"])
    assert memory.pool_bytes < 0
    assert (memory.tokens, memory.requests, memory.holds_the_load) == (0, 0, False)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "transformers", "litgpt"])
def test_every_engine_explains_every_byte(engine: str) -> None:
    memory = serving_memory(replace(VLLM, engine=engine), H100)  # type: ignore[arg-type]
    assert memory.tokens > 0
    for term in memory.estimate.terms:
        assert 0 <= term.low <= term.expected <= term.high, term.key
        assert term.formula
        assert term.source
    assert memory.estimate.expected("device") < H100.memory_bytes


def test_generation_by_old_transformers_holds_the_cache_twice() -> None:
    old, new = (replace(VLLM, engine="transformers", engine_version=version) for version in ("4.31", "4.46"))
    assert terms(serving_memory(old, H100))["kv_cache"] == 2 * terms(serving_memory(new, H100))["kv_cache"]
