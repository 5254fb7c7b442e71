"""Reading prompts: all their tokens at once, bound by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network
from planner.runs import ServingRun
from planner.speed.cards import Card, card
from planner.speed.collectives import slowest_link
from planner.speed.decode import serving_all_reduce, weight_bytes
from planner.speed.engines import KERNELS
from planner.speed.flops import Forward, forward_flops
from planner.speed.kernels import SERVING_FLASH, serving_kernels, weight_kernel
from planner.speed.terms import TimeTerm, paced_term, time_term
from planner.speed.traffic import ELEMENT, layer_traffic


@dataclass(frozen=True, slots=True)
class Reading:
    """`prompts` of `length` tokens each, read together."""

    run: ServingRun
    card: Card
    prompts: float
    length: int

    @property
    def tokens(self) -> float:
        return self.prompts * self.length

    @property
    def forward(self) -> Forward:
        return forward_flops(self.run.shape, self.length)


def prefill_terms(run: ServingRun, gpu: Gpu, network: Network, prompts: float) -> Iterator[TimeTerm]:
    reading = Reading(run, card(gpu, run.compute_dtype, flash=SERVING_FLASH), prompts, max(1, run.prompt_tokens))
    yield _matrices(reading)
    yield _attention(reading)
    yield _traffic(reading)
    if run.layout.tensor > 1:
        yield _all_reduces(reading, network)
    yield _launches(run)


def _matrices(reading: Reading) -> TimeTerm:
    """The head works on each prompt's last token alone."""
    run, forward = reading.run, reading.forward
    flops = (forward.matrices - forward.head) * reading.tokens + forward.head * reading.prompts
    computed = flops / run.layout.tensor / reading.card.matrix
    return time_term(
        "prefill_matrices",
        max(computed, weight_bytes(run, reading.tokens) / reading.card.memory),
        reading.card.matrix_spread,
        formula="2 x active weights x tokens / reached FLOP/s, at least the weights once",
        source=reading.card.sources["matrix"],
    )


def _attention(reading: Reading) -> TimeTerm:
    flops = reading.forward.attention * reading.tokens / reading.run.layout.tensor
    return paced_term(
        "prefill_attention",
        flops,
        reading.card.attention,
        reading.card.attention_spread,
        unit="FLOP",
        formula="(q·k + p·v over causal pairs)",
        source=reading.card.sources["attention"],
    )


def _traffic(reading: Reading) -> TimeTerm:
    shape, kernels = reading.run.shape, KERNELS["fused"]
    layer = layer_traffic(shape, kernels, None)
    each = layer.streams + (layer.widths + layer.experts) / reading.run.layout.tensor
    return paced_term(
        "prefill_traffic",
        each * shape.layers * reading.tokens,
        reading.card.memory,
        reading.card.memory_spread,
        unit="B",
        formula="bytes of norms, residuals, rotation, activation and matrix ends",
        source=f"{reading.card.sources['memory']}; {kernels.source}",
    )


def _all_reduces(reading: Reading, network: Network) -> TimeTerm:
    run, group = reading.run, reading.run.layout.tensor
    link = slowest_link(network, group)
    size = reading.tokens * run.shape.hidden * ELEMENT
    return time_term(
        "prefill_tensor_parallel",
        2 * run.shape.layers * serving_all_reduce(size, group, link, serving_kernels(run)),
        0.3,
        formula="2 all-reduces a layer of tokens x h x 2 B",
        source=link.source,
    )


def _launches(run: ServingRun) -> TimeTerm:
    kernels = serving_kernels(run)
    return time_term(
        "prefill_launches",
        run.shape.layers * (kernels.layer + weight_kernel(run).layer) + kernels.step,
        kernels.spread,
        formula="layers x time of a layer beside its work",
        source=kernels.source,
    )
