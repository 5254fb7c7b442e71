"""Reading prompts: all their tokens at once, bound by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network
from planner.runs import ServingRun
from planner.speed.cards import card
from planner.speed.collectives import slowest_link
from planner.speed.decode import serving_all_reduce, weight_bytes
from planner.speed.engines import _FUSED
from planner.speed.flops import forward_flops
from planner.speed.kernels import SERVING_FLASH, serving_kernels, weight_kernel
from planner.speed.terms import TimeTerm, time_term
from planner.speed.traffic import layer_traffic


def prefill_terms(run: ServingRun, gpu: Gpu, network: Network, prompts: float) -> Iterator[TimeTerm]:
    """`prompts` of run.prompt_tokens each. The head works on each prompt's last token alone."""
    length = max(1, run.prompt_tokens)
    tokens = prompts * length
    reached, kernels, split = card(gpu, run.compute_dtype, flash=SERVING_FLASH), serving_kernels(run), run.layout.tensor
    forward = forward_flops(run.shape, length)
    computed = ((forward.matrices - forward.head) * tokens + forward.head * prompts) / split / reached.matrix
    read = weight_bytes(run, tokens) / reached.memory
    yield time_term(
        "prefill_matrices",
        max(computed, read),
        reached.matrix_spread,
        formula="2 x active weights x tokens / reached FLOP/s, at least the weights once",
        source=reached.sources["matrix"],
    )
    yield time_term(
        "prefill_attention",
        forward.attention * tokens / split / reached.attention,
        reached.attention_spread,
        formula="(q·k + p·v over causal pairs) / reached FLOP/s",
        source=reached.sources["attention"],
    )
    layer = layer_traffic(run.shape, _FUSED, None)
    size = (layer.streams + (layer.widths + layer.experts) / split) * run.shape.layers * tokens
    yield time_term(
        "prefill_traffic",
        size / reached.memory,
        reached.memory_spread,
        formula="bytes of norms, residuals, rotation, activation and matrix ends / reached bandwidth",
        source=reached.sources["memory"],
    )
    if split > 1:
        link = slowest_link(network, split)
        one = serving_all_reduce(tokens * run.shape.hidden * 2.0, split, link, kernels)
        yield time_term(
            "prefill_tensor_parallel",
            2 * run.shape.layers * one,
            0.3,
            formula="2 all-reduces a layer of tokens x h x 2 B",
            source=link.source,
        )
    launches = run.shape.layers * (kernels.layer + weight_kernel(run).layer) + kernels.step
    yield time_term(
        "prefill_launches",
        launches,
        kernels.spread,
        formula="layers x time of a layer beside its work",
        source=kernels.source,
    )
