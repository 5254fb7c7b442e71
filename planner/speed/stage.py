"""What a training step does how often, and the part of the model that one GPU of a stage works on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.runs import TrainingRun
from planner.speed.flops import forward_flops
from planner.speed.terms import Constant

# A flash kernel computes the scores anew: five multiplications against two, at some 80 % of the forward rate.
ATTENTION_BACKWARD = Constant(
    3.1, 0.15, "backward attention, in forward ones", "FlashAttention-2 (Dao 2023), section 3.1 and figure 4"
)
# The backward pass of what only moves memory reads the gradient as well as the input.
TRAFFIC_BACKWARD = 2.0


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the work of a forward pass is done in a step: forward, again under checkpointing, and the two halves of backward."""

    again: float
    again_mlp: float
    again_attention: float
    input_gradient: float
    weight_gradient: float
    head_weight_gradient: float

    @property
    def projections(self) -> float:
        return 1 + self.again + self.input_gradient + self.weight_gradient

    @property
    def mlp(self) -> float:
        return 1 + self.again_mlp + self.input_gradient + self.weight_gradient

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
    again = recomputed(run)
    return Passes(
        again=float("layer" in again),
        again_mlp=float(bool(again & {"layer", "mlp", "moe"})),
        again_attention=float(bool(again & {"layer", "core_attn"})),
        input_gradient=1.0,
        weight_gradient=1.0 if full else 0.0,
        head_weight_gradient=1.0 if full or "head" in whole else 0.0,
    )


def recomputed(run: TrainingRun) -> frozenset[str]:
    """By Megatron's names of modules; "layer" is all of it. Selective checkpointing that names none is of the attention's core."""
    if run.checkpointing == "selective":
        return frozenset(run.recompute_modules or ("core_attn",))
    return frozenset(("layer",) if run.checkpointing == "full" else ())


@dataclass(frozen=True, slots=True)
class Stage:
    """The part of the model on one GPU: layers of a pipeline stage, share of the head that is there, tokens of a micro-batch."""

    layers: float
    head: float
    tokens: float

    @classmethod
    def fullest(cls, run: TrainingRun) -> Stage:
        """The stage that the others wait for."""
        layers, head = _heaviest(run)
        return cls(layers, head / run.layout.tensor, _tokens(run))

    @classmethod
    def mean(cls, run: TrainingRun) -> Stage:
        pipeline = run.layout.pipeline
        return cls(run.shape.layers / pipeline, 1 / pipeline / run.layout.tensor, _tokens(run))


def _tokens(run: TrainingRun) -> float:
    return run.micro_batch * run.sequence_length / run.layout.context


def _heaviest(run: TrainingRun) -> tuple[float, float]:
    """Layers and heads of it. Layers that divide evenly leave the head on top of the last stage's; others are cut with embedding and head
    counted as a layer each, as such models are built for (Llama 3.1 405B: 126 + 2 over 8 x 8).
    """
    layout, layers = run.layout, run.shape.layers
    chunks = layout.pipeline * layout.virtual_pipeline
    if layers % chunks == 0:
        return layers / layout.pipeline, 1.0
    slots = math.ceil((layers + 2) / chunks) * layout.virtual_pipeline
    forward = forward_flops(run.shape, run.sequence_length)
    head_in_layers = forward.head / ((forward.total - forward.head) / layers)
    return (slots - 1, 1.0) if head_in_layers > 1 else (slots, 0.0)
