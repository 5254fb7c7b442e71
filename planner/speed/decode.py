"""One step of generation: every weight that a token of the batch needs and the cache of every request are read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Link, Network
from planner.memory.cache import token_cache
from planner.parameters import count_parameters
from planner.runs import ServingRun
from planner.shapes import ModelShape
from planner.speed.cards import Card, card
from planner.speed.collectives import all_reduce_seconds, slowest_link
from planner.speed.flops import cached_attention_flops, forward_flops, layer_kinds
from planner.speed.kernels import (
    REPEATED_READS,
    SERVING_FLASH,
    ServingKernels,
    bytes_per_weight,
    serving_kernels,
    weight_kernel,
    weight_stream,
)
from planner.speed.terms import TimeTerm, time_term
from planner.speed.traffic import ELEMENT

_HEAD_BYTES = 2.0


def decode_terms(run: ServingRun, gpu: Gpu, network: Network, batch: float, context: int) -> Iterator[TimeTerm]:
    """`batch` requests with `context` tokens behind each, on each of the tensor-parallel GPUs."""
    reached, kernels = card(gpu, run.compute_dtype, flash=SERVING_FLASH), serving_kernels(run)
    busy = [_weights(run, gpu, reached, batch), _cache(run, reached, batch, context, kernels)]
    if run.layout.tensor > 1:
        busy.append(_all_reduce(run, network, batch, kernels))
    yield from busy
    yield from _overhead(run, kernels, batch, sum(term.expected for term in busy))


def touched_experts(count: int, active: int, tokens: float) -> float:
    """Experts that at least one of `tokens` is routed to, when each is as likely as the other."""
    missed: float = (1 - active / count) ** tokens
    return count * (1 - missed)


def weight_bytes(run: ServingRun, tokens: float) -> float:
    """What a step reads on one GPU. The embedding is only looked up; the head stays 16-bit."""
    counts, each = count_parameters(run.shape), bytes_per_weight(run)
    routed = 0.0
    if run.shape.experts:
        experts = run.shape.experts
        routed = counts.routed_total * touched_experts(experts.count, experts.active, tokens) / experts.count
    dense = counts.layers - counts.routed_total
    head = run.shape.vocab * run.shape.hidden * max(_HEAD_BYTES, each)
    return (dense * each + head) / run.layout.tensor + routed * each / max(run.layout.tensor, run.layout.expert)


def _weights(run: ServingRun, gpu: Gpu, reached: Card, batch: float) -> TimeTerm:
    stream = weight_stream(gpu.id)
    read = weight_bytes(run, batch) / (reached.bandwidth * stream.value * weight_kernel(run).share)
    forward = forward_flops(run.shape, 1)
    computed = forward.matrices * batch / run.layout.tensor / reached.matrix
    return time_term(
        "weights",
        max(read, computed),
        stream.spread,
        formula="max(bytes of weights that the batch needs / reached bandwidth, 2 x active weights x batch / reached FLOP/s)",
        source=stream.source,
    )


def cache_bytes(run: ServingRun, context: int) -> float:
    """What one request's token reads on one GPU, over all stages: layers with a window read no further back than that."""
    return token_cache(run.shape, replace(run.layout, pipeline=1), run.kv_dtype).sequence(context)


def _cache(run: ServingRun, reached: Card, batch: float, context: int, kernels: ServingKernels) -> TimeTerm:
    size = batch * cache_bytes(run, context) * repeats(run.shape, kernels)
    flops = batch * cached_attention_flops(run.shape, context) / run.layout.tensor
    return time_term(
        "cache",
        max(size / (reached.bandwidth * kernels.cache), flops / reached.attention),
        kernels.spread,
        formula="batch x context x bytes of the cache for a token x times it is read / reached bandwidth, at least its arithmetic",
        source=kernels.source,
    )


def repeats(shape: ModelShape, kernels: ServingKernels) -> float:
    """How often a step moves the cache: once, or, copied, a read and a write to append, a read, and a write and a read for each head of a group."""
    group = 1.0 if shape.latent else shape.heads / shape.kv_heads
    if kernels.cache_copied:
        return 2 + (1 + 2 * group if group > 1 else 1)
    return max(1.0, group * REPEATED_READS.value) if kernels.cache_repeated else 1.0


def _all_reduce(run: ServingRun, network: Network, batch: float, kernels: ServingKernels) -> TimeTerm:
    link = slowest_link(network, run.layout.tensor)
    size = batch * run.shape.hidden * ELEMENT
    one = serving_all_reduce(size, run.layout.tensor, link, kernels)
    return time_term(
        "tensor_parallel",
        2 * run.shape.layers * one,
        0.3,
        formula="2 all-reduces a layer of batch x h x 2 B, at least the time of a small one",
        source=link.source,
    )


def serving_all_reduce(size: float, group: int, link: Link, kernels: ServingKernels) -> float:
    """The better of a one-shot kernel (a fixed time, and each GPU reads all of the others') and NCCL's ring."""
    one_shot = max(kernels.all_reduce, 2 * link.latency) + size * (group - 1) / link.reached
    return min(one_shot, all_reduce_seconds(size, group, link))


def _overhead(run: ServingRun, kernels: ServingKernels, batch: float, busy: float) -> Iterator[TimeTerm]:
    weights = weight_kernel(run)
    experts = layer_kinds(run.shape)[1] * (kernels.experts + weights.experts)
    layers = run.shape.layers * (kernels.layer + weights.layer) + experts
    hides = kernels.host and not weights.blocking
    seconds = max(0.0, layers - busy) if hides else layers
    yield time_term(
        "launches",
        seconds,
        kernels.spread,
        formula="max(0, layers x host time of a layer - time of the GPU)"
        if hides
        else "layers x gaps between a layer's kernels",
        source=kernels.source,
        hidden=layers - seconds,
    )
    if host := kernels.step + batch * kernels.request:
        yield time_term(
            "scheduler",
            host,
            kernels.spread,
            formula="once a step and for each request: scheduling and sampling",
            source=kernels.source,
        )
