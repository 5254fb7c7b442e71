"""What serving engines take beside weights and cache, by version: peaks of the forward pass and of the sampler, context, CUDA graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.estimates import Term
from planner.memory.elements import GIB
from planner.runs import ServingRun

Version = tuple[int, ...]
NEWEST: Version = (999,)

# The runtime sees less than NVML shows, on cards of 15 to 80 GiB alike: 0.42 to 0.49 GiB in vLLM's logs (T4, 3090, 4090D, H100).
HIDDEN_FROM_RUNTIME = 0.44 * GIB
# torch_non_torch in vLLM's logs: one card 0.01 to 0.35 GiB; with tensor parallelism NCCL and the custom all-reduce (llm-d-planner @875a4fd6).
NON_TORCH = 0.15 * GIB
NON_TORCH_TENSOR = 2.1 * GIB
# Captured graphs grow with the layers: 0.35 to 1.12 GiB for 24 to 40 layers (vLLM 0.8 to 0.10).
GRAPH_PER_LAYER = 0.02 * GIB
# From here on vLLM takes the graphs out of the pool (PR #30515).
GRAPHS_IN_PROFILE: Version = (0, 20)
# Peak of the sampler, bytes a logit: sorting values and 64-bit indices; a kernel without a sort since 0.17 (llm-d-planner, 11 models).
SAMPLER_SORTED = 38.0
SAMPLER = 14.0
SAMPLER_WITHOUT_SORT: Version = (0, 17)
PROFILE_FIXED = 0.18 * GIB
# Workspaces that stay beside the peak: of fused expert kernels, and of a vision encoder (llm-d-planner, 0.26 to 0.47 and 0.2 to 0.3).
PROFILE_EXPERTS = 0.35 * GIB
PROFILE_VISION = 0.25 * GIB
# Versions whose defaults grew with the card (vLLM arg_utils: 70 GiB and more, A100 excepted).
LARGE_CARD_DEFAULTS: Version = (0, 9)
LARGE_CARD = 70 * GIB
# Generation by transformers keeps the old tuple of caches until the new one is whole, before DynamicCache.
GROWS_IN_PLACE: Version = (4, 36)
# Published tables show the peak of reading the prompt up to 4.46, and no longer from 4.51 on (Qwen2.5 and Qwen3 benchmarks).
STEADY_TABLES: Version = (4, 50)


def version_of(run: ServingRun) -> Version:
    """("0.6.5-dev" -> 0, 6, 5); the newest where none is stated, and of engines whose constants know no versions."""
    if run.engine not in {"vllm", "transformers"}:
        return NEWEST
    if run.engine_version.startswith("V1"):
        return (0, 8)
    numbers = re.findall(r"\d+", run.engine_version)
    return tuple(int(number) for number in numbers[:3]) or NEWEST


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one scheduling step."""

    sequences: int
    tokens: int


def limits(run: ServingRun, gpu: Gpu | None) -> Limits:
    """The run's own, or vLLM's defaults."""
    large = gpu is not None and gpu.memory_bytes >= LARGE_CARD and not gpu.id.startswith("a100")
    version = version_of(run)
    modern = large and version >= LARGE_CARD_DEFAULTS
    sequences = run.max_sequences or (1024 if modern else 256)
    first_generation = version < (0, 8)
    tokens = run.max_batched_tokens or (
        max(run.max_model_len or 2048, 2048) if first_generation else 8192 if modern else 2048
    )
    return Limits(sequences, tokens)


def activation_peak(run: ServingRun, gpu: Gpu | None) -> Term:
    """The profile run of a full step: the wider of the MLP of the last layer and the sampler of all sequences."""
    shape, limit = run.shape, limits(run, gpu)
    intermediate = shape.experts.active * shape.experts.intermediate if shape.experts else shape.intermediate
    width = 6 * intermediate / run.layout.tensor + 6 * shape.hidden
    sampled = SAMPLER if version_of(run) >= SAMPLER_WITHOUT_SORT else SAMPLER_SORTED
    forward, sampler = width * limit.tokens, sampled * limit.sequences * shape.vocab
    fixed = (
        PROFILE_FIXED + (PROFILE_EXPERTS if shape.experts else 0) + (PROFILE_VISION if shape.vision_parameters else 0)
    )
    formula = f"max({width:.4g} B x {limit.tokens} tokens, {sampled:g} B x {limit.sequences} sequences x V) + {fixed / GIB:.2f} GiB"
    source = "vLLM profile run: gate, up and their product in 16 bits; sampler's logits at full width on each rank"
    return Term.within("activation_peak", max(forward, sampler) + fixed, 0.25, formula=formula, source=source)


def non_torch(run: ServingRun) -> Term:
    amount = NON_TORCH_TENSOR if run.layout.tensor > 1 else NON_TORCH
    return Term.within(
        "runtime",
        amount,
        0.7,
        formula="fixed, by tensor parallelism",
        source="vLLM logs; llm-d-planner @875a4fd6",
        counter="device",
    )


def graphs(run: ServingRun) -> Term:
    amount = GRAPH_PER_LAYER * run.shape.layers / run.layout.pipeline if run.cuda_graphs else 0.0
    return Term.within(
        "cuda_graphs", amount, 0.5, formula="0.02 GiB x L", source="vLLM logs 0.8 to 0.10", counter="device"
    )


def prefill(run: ServingRun, tokens: int) -> Term:
    """Eager engines: gate, up and product of one layer for the whole prompt, and a few copies of the hidden state."""
    experts = run.shape.experts
    intermediate = experts.active * experts.intermediate if experts else run.shape.intermediate
    scale = 2.0 if run.compute_dtype == "fp32" else 1.0
    width = scale * (6 * intermediate + 8 * run.shape.hidden)
    steady = scale * 2 * run.shape.hidden
    # Without a version the peak is planned for: it is there, whatever the tables show.
    shown = run.engine == "transformers" and STEADY_TABLES <= version_of(run) < NEWEST
    expected = steady if shown else width
    return Term(
        "activation_peak",
        expected * tokens,
        steady * tokens,
        1.3 * width * tokens,
        formula=f"{expected:g} B x {tokens} prompt tokens (up to {width:g} B while the prompt is read)",
        source="transformers modeling: gate, up and product of one layer, in 16 bits; measured tables of 4.46 and 4.51",
    )
