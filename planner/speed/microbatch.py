"""What one micro-batch costs a GPU: matrix multiplications, attention, memory traffic, the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.runs import TrainingRun
from planner.speed.cards import Card, card
from planner.speed.engines import Kernels, behaviour, kernels_of
from planner.speed.flops import forward_flops, prediction_flops
from planner.speed.sharding import gradient_bytes, stage_parameters
from planner.speed.stage import ATTENTION_BACKWARD, Passes, Stage, passes
from planner.speed.terms import Constant, TimeTerm, paced_term, time_term
from planner.speed.traffic import ELEMENT, adapted_matrices, cast_bytes, layer_traffic, loss_bytes

# Bytes through memory to unpack one quantized weight before a multiplication.
DEQUANTIZE = {
    "gptq-int4": Constant(
        24.0, 0.3, "bytes for a weight", "auto-gptq 0.4 unpacks with tensor operations in training; Qwen Q-LoRA rows"
    ),
    "gptq-int8": Constant(20.0, 0.3, "bytes for a weight", "as gptq-int4"),
    "awq-int4": Constant(20.0, 0.4, "bytes for a weight", "as gptq-int4"),
    "nf4": Constant(6.0, 0.3, "bytes for a weight", "a fused kernel writes 16 bits and the multiplication reads them"),
    "nf4-dq": Constant(8.0, 0.3, "bytes for a weight", "as nf4, and the constants are unpacked first"),
    "fp4": Constant(6.0, 0.3, "bytes for a weight", "as nf4"),
    "fp4-dq": Constant(8.0, 0.3, "bytes for a weight", "as nf4-dq"),
    "int8": Constant(6.0, 0.4, "bytes for a weight", "as nf4"),
}


@dataclass(frozen=True, slots=True)
class Work:
    """Everything that a term of a micro-batch follows from."""

    run: TrainingRun
    stage: Stage
    passes: Passes
    card: Card
    kernels: Kernels

    @property
    def layer_share(self) -> float:
        """Of the operations of all layers, those of this GPU."""
        return self.stage.layers / self.run.shape.layers / self.run.layout.tensor


def microbatch_terms(run: TrainingRun, gpu: Gpu, stage: Stage) -> Iterator[TimeTerm]:
    """Of the GPU, in the order of a step; what the host needs longer comes last."""
    flash = int(str(run.engine_options.get("flash_attention", behaviour(run).flash)))
    work = Work(run, stage, passes(run), card(gpu, run.compute_dtype, flash=flash), kernels_of(run))
    busy = [_matrices(work), _head(work), _attention(work), _traffic(work), _weights(work), _loss(work)]
    if run.weight_format in DEQUANTIZE:
        busy.append(_dequantize(work))
    yield from busy
    yield _host(work, sum(term.expected for term in busy))


def _matrices(work: Work) -> TimeTerm:
    run, done = work.run, work.passes
    forward = forward_flops(run.shape, run.sequence_length)
    layers = forward.projections * done.projections + (forward.mlp + forward.routed) * done.mlp
    layers += _adapter_flops(run) * (3 + done.again)
    layers += prediction_flops(run.shape, run.sequence_length) * done.projections
    return paced_term(
        "matrices",
        layers * work.stage.tokens * work.layer_share,
        work.card.matrix,
        work.card.matrix_spread,
        unit="FLOP",
        formula="2 x weights x tokens x (1 forward + 1 again if checkpointed + 1 input gradient + 1 weight gradient if trained)",
        source=work.card.sources["matrix"],
    )


def _adapter_flops(run: TrainingRun) -> float:
    """Forward, one token, all layers."""
    if not run.lora:
        return 0.0
    ends = sum(matrix.inputs + matrix.outputs for matrix in adapted_matrices(run.shape, run.lora))
    return 2.0 * run.lora.rank * ends * run.shape.layers


def _head(work: Work) -> TimeTerm:
    shape, stage = work.run.shape, work.stage
    flops = 2.0 * shape.hidden * shape.vocab * stage.tokens * stage.head * work.passes.head
    return paced_term(
        "head",
        flops,
        work.card.matrix16,
        work.card.matrix_spread,
        unit="FLOP",
        formula="2 h V x tokens x (forward + input gradient + weight gradient if trained)",
        source=work.card.sources["matrix"],
    )


def _attention(work: Work) -> TimeTerm:
    forward = forward_flops(work.run.shape, work.run.sequence_length).attention
    flops = forward * work.stage.tokens * work.layer_share * work.passes.attention
    return paced_term(
        "attention",
        flops,
        work.card.attention,
        work.card.attention_spread,
        unit="FLOP",
        formula="(q·k + p·v over causal pairs) x (1 forward + 1 again + backward)",
        source=f"{work.card.sources['attention']}; {ATTENTION_BACKWARD.source}",
    )


def _traffic(work: Work) -> TimeTerm:
    run, done, kernels, split = work.run, work.passes, work.kernels, work.run.layout.tensor
    layer = layer_traffic(run.shape, kernels, run.lora)
    streams = layer.streams / (split if run.layout.sequence_parallel or behaviour(run).splits_streams else 1)
    widths = (layer.widths + layer.adapters * kernels.adapters) * done.traffic
    if run.compute_dtype == "fp8":
        widths += cast_bytes(run.shape) * kernels.casts * done.launches
    size = ((streams + layer.experts) * done.traffic + widths / split) * work.stage.layers * work.stage.tokens
    return paced_term(
        "traffic",
        size,
        work.card.memory,
        work.card.memory_spread,
        unit="B",
        formula="bytes of norms, residuals, rotation, activation, adapters and matrix ends x passes",
        source=f"{work.card.sources['memory']}; {kernels.source}",
    )


def _weights(work: Work) -> TimeTerm:
    """Matters where few tokens meet many weights: short micro-batches, many experts on one card."""
    run = work.run
    each = (1.0 if run.compute_dtype == "fp8" else ELEMENT) * work.passes.launches
    if run.method == "full":
        each += gradient_bytes(run) * (2 if run.gradient_accumulation > 1 else 1)
    return paced_term(
        "weights",
        stage_parameters(run) * each,
        work.card.memory,
        work.card.memory_spread,
        unit="B",
        formula="weights of this GPU x (2 B, or 1 in 8 bit, x passes + gradients added up)",
        source=work.card.sources["memory"],
    )


def _loss(work: Work) -> TimeTerm:
    size = loss_bytes(work.run, work.kernels) * work.stage.head * work.stage.tokens
    return paced_term(
        "loss",
        size,
        work.card.memory,
        work.card.memory_spread,
        unit="B",
        formula="V x tokens x bytes of logits, softmax and their gradient",
        source=f"{work.card.sources['memory']}; {work.kernels.source}",
    )


def _dequantize(work: Work) -> TimeTerm:
    constant = DEQUANTIZE[work.run.weight_format]
    weights = forward_flops(work.run.shape, 1)
    elements = (weights.projections + weights.mlp) / 2 * work.layer_share
    return paced_term(
        "dequantize",
        elements * constant.value * work.passes.launches,
        work.card.memory,
        constant.spread,
        unit="B",
        formula="weights x bytes to unpack one x (forward + again + backward)",
        source=constant.source,
    )


def _host(work: Work, busy: float) -> TimeTerm:
    run, kernels = work.run, work.kernels
    adapted = len(adapted_matrices(run.shape, run.lora)) if run.lora else 0
    shard = behaviour(run).host_shard if run.layout.zero_stage == 3 else 0.0
    layer = kernels.host_layer + kernels.host_adapter * adapted + shard
    needed = work.stage.layers * layer * work.passes.launches
    return time_term(
        "host",
        max(0.0, needed - busy),
        0.3,
        formula="max(0, layers x passes x host time of a layer - time of the GPU)",
        source=kernels.source,
        hidden=min(needed, busy),
    )
