"""What one micro-batch costs the fullest pipeline stage's GPU: matrix multiplications, attention, memory traffic, the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.runs import TrainingRun
from planner.speed.cards import Card, card
from planner.speed.engines import Behaviour, behaviour
from planner.speed.flops import forward_flops, prediction_flops
from planner.speed.sharding import gradient_bytes, stage_parameters
from planner.speed.terms import Constant, TimeTerm, time_term
from planner.speed.traffic import ELEMENT, adapted_matrices, cast_bytes, layer_traffic, loss_bytes

# A flash kernel computes the scores anew: five multiplications against two, at some 80 % of the forward rate.
ATTENTION_BACKWARD = Constant(
    3.1, 0.15, "backward attention, in forward ones", "FlashAttention-2 (Dao 2023), section 3.1 and figure 4"
)
# The backward pass of what only moves memory reads the gradient as well as the input.
TRAFFIC_BACKWARD = 2.0
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
class Passes:
    """How often the work of a forward pass is done in a step: forward, again under checkpointing, and the two halves of backward."""

    again: float
    again_attention: float
    input_gradient: float
    weight_gradient: float
    head_weight_gradient: float

    @property
    def layers(self) -> float:
        return 1 + self.again + self.input_gradient + self.weight_gradient

    @property
    def head(self) -> float:
        return 1 + self.input_gradient + self.head_weight_gradient

    @property
    def attention(self) -> float:
        return 1 + self.again_attention + ATTENTION_BACKWARD.value

    @property
    def traffic(self) -> float:
        return 1 + self.again + TRAFFIC_BACKWARD

    @property
    def launches(self) -> float:
        return 2 + self.again


def passes(run: TrainingRun) -> Passes:
    full = run.method == "full"
    whole = run.lora.trained_whole if run.lora else ()
    return Passes(
        again=1.0 if run.checkpointing == "full" else 0.0,
        again_attention=0.0 if run.checkpointing == "none" else 1.0,
        input_gradient=1.0,
        weight_gradient=1.0 if full else 0.0,
        head_weight_gradient=1.0 if full or "head" in whole else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """The part of the model on one GPU: layers of the fullest stage, share of the head that is there, tokens of a micro-batch."""

    layers: float
    head: float
    tokens: float

    @classmethod
    def fullest(cls, run: TrainingRun) -> Stage:
        pipeline, tensor = run.layout.pipeline, run.layout.tensor
        # Layers that do not divide into the stages are cut with embedding and head counted as layers (Llama 3.1: 126 + 2 over 8 x 8).
        even = run.shape.layers % (pipeline * run.layout.virtual_pipeline) == 0
        head = 1.0 if even else 1 / pipeline
        tokens = run.micro_batch * run.sequence_length / run.layout.context
        return cls(run.shape.layers / pipeline, head / tensor, tokens)

    @classmethod
    def mean(cls, run: TrainingRun) -> Stage:
        fullest = cls.fullest(run)
        return cls(fullest.layers, 1 / run.layout.pipeline / run.layout.tensor, fullest.tokens)


def microbatch_terms(run: TrainingRun, gpu: Gpu, stage: Stage) -> Iterator[TimeTerm]:
    """Of the GPU, in the order of a step; what the host needs longer comes last."""
    engine, done = behaviour(run), passes(run)
    reached = card(gpu, run.compute_dtype, flash=int(str(run.engine_options.get("flash_attention", engine.flash))))
    busy = [
        _matrices(run, reached, stage, done),
        _head(run, reached, stage, done),
        _attention(run, reached, stage, done),
        _traffic(run, reached, stage, done, engine),
        _weights(run, reached, done),
        _loss(run, reached, stage, engine),
    ]
    if run.weight_format in DEQUANTIZE:
        busy.append(_dequantize(run, reached, stage, done))
    yield from busy
    yield _host(run, stage, done, engine, sum(term.expected for term in busy))


def _matrices(run: TrainingRun, reached: Card, stage: Stage, done: Passes) -> TimeTerm:
    forward = forward_flops(run.shape, run.sequence_length)
    layers = (forward.matrices - forward.head) * done.layers + _adapter_flops(run) * (3 + done.again)
    layers += prediction_flops(run.shape, run.sequence_length) * done.layers
    flops = layers * stage.tokens * stage.layers / run.shape.layers / run.layout.tensor
    return time_term(
        "matrices",
        flops / reached.matrix,
        reached.matrix_spread,
        formula="2 x weights x tokens x (1 forward + 1 again if checkpointed + 1 input gradient + 1 weight gradient if trained) / reached FLOP/s",
        source=reached.sources["matrix"],
    )


def _adapter_flops(run: TrainingRun) -> float:
    """Forward, one token, all layers."""
    if not run.lora:
        return 0.0
    ends = sum(matrix.inputs + matrix.outputs for matrix in adapted_matrices(run.shape, run.lora))
    return 2.0 * run.lora.rank * ends * run.shape.layers


def _head(run: TrainingRun, reached: Card, stage: Stage, done: Passes) -> TimeTerm:
    flops = 2.0 * run.shape.hidden * run.shape.vocab * stage.tokens * stage.head * done.head
    return time_term(
        "head",
        flops / reached.matrix16,
        reached.matrix_spread,
        formula="2 h V x tokens x (forward + input gradient + weight gradient if trained) / reached 16-bit FLOP/s",
        source=reached.sources["matrix"],
    )


def _attention(run: TrainingRun, reached: Card, stage: Stage, done: Passes) -> TimeTerm:
    forward = forward_flops(run.shape, run.sequence_length).attention
    flops = forward * stage.tokens * stage.layers / run.shape.layers / run.layout.tensor * done.attention
    return time_term(
        "attention",
        flops / reached.attention,
        reached.attention_spread,
        formula="(q·k + p·v over causal pairs) x (1 forward + 1 again + backward) / reached FLOP/s of the flash kernel",
        source=f"{reached.sources['attention']}; {ATTENTION_BACKWARD.source}",
    )


def _traffic(run: TrainingRun, reached: Card, stage: Stage, done: Passes, engine: Behaviour) -> TimeTerm:
    layer = layer_traffic(run.shape, engine.kernels, run.lora)
    split = run.layout.tensor
    streams = layer.streams / (split if run.layout.sequence_parallel or engine.splits_streams else 1)
    widths = (layer.widths + layer.adapters * engine.kernels.adapters) * done.traffic
    if run.compute_dtype == "fp8":
        widths += cast_bytes(run.shape) * engine.kernels.casts * done.launches
    size = ((streams + layer.experts) * done.traffic + widths / split) * stage.layers * stage.tokens
    return time_term(
        "traffic",
        size / reached.memory,
        reached.memory_spread,
        formula="bytes of norms, residuals, rotation, activation, adapters and matrix ends x passes / reached bandwidth",
        source=f"{reached.sources['memory']}; {engine.kernels.source}",
    )


def _weights(run: TrainingRun, reached: Card, done: Passes) -> TimeTerm:
    """Matters where few tokens meet many weights: short micro-batches, many experts on one card."""
    each = (1.0 if run.compute_dtype == "fp8" else ELEMENT) * done.launches
    if run.method == "full":
        each += gradient_bytes(run) * (2 if run.gradient_accumulation > 1 else 1)
    return time_term(
        "weights",
        stage_parameters(run) * each / reached.memory,
        reached.memory_spread,
        formula="weights of this GPU x (2 B, or 1 in 8 bit, x passes + gradients added up) / reached bandwidth",
        source=reached.sources["memory"],
    )


def _loss(run: TrainingRun, reached: Card, stage: Stage, engine: Behaviour) -> TimeTerm:
    size = loss_bytes(run, engine.kernels) * stage.head * stage.tokens
    return time_term(
        "loss",
        size / reached.memory,
        reached.memory_spread,
        formula="V x tokens x bytes of logits, softmax and their gradient / reached bandwidth",
        source=reached.sources["memory"],
    )


def _dequantize(run: TrainingRun, reached: Card, stage: Stage, done: Passes) -> TimeTerm:
    constant = DEQUANTIZE[run.weight_format]
    weights = forward_flops(run.shape, 1)
    elements = (weights.projections + weights.mlp) / 2 * stage.layers / run.shape.layers / run.layout.tensor
    return time_term(
        "dequantize",
        elements * constant.value * done.launches / reached.memory,
        constant.spread,
        formula="weights x bytes to unpack one x (forward + again + backward) / reached bandwidth",
        source=constant.source,
    )


def _host(run: TrainingRun, stage: Stage, done: Passes, engine: Behaviour, busy: float) -> TimeTerm:
    adapted = len(adapted_matrices(run.shape, run.lora)) if run.lora else 0
    layer = engine.kernels.host_layer + engine.kernels.host_adapter * adapted
    shard = engine.host_shard if run.layout.zero_stage == 3 else 0.0
    needed = stage.layers * (layer + shard) * done.launches
    return time_term(
        "host",
        max(0.0, needed - busy),
        0.3,
        formula="max(0, layers x passes x host time of a layer - time of the GPU)",
        source=engine.kernels.source,
        hidden=min(needed, busy),
    )
