"""What the autograd graph of each engine keeps of a layer, in bytes, and where that is known from.

Counted from the engines' layers, tensor by tensor: a matrix product keeps its input where its weight is trained, an elementwise product
keeps both factors, attention keeps q, k, v and its output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from planner.runs import TrainingEngine, TrainingRun


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes for an element, of one layer."""

    # A norm's input: 2 in 16 bits, 4 where the layer widens it to fp32 first.
    norm_input: float
    # What a norm keeps beside that when its weight is trained.
    norm_trained: float
    # activation(gate) x up as one kernel keeps gate and up only; as three it keeps their factors too.
    fused_gate: bool
    # Copies of k and v for every query head (grouped-query attention without kernel support).
    expanded_kv: bool
    # The fused q/k/v product stays alive because v is a view of it, beside the rotated copies of q and k.
    qkv_view: bool
    # Attention probabilities for a score: softmax, dropout mask and dropped copy, in the engine's types.
    score: float
    source: str
    # What bitsandbytes layers keep beside their inputs, for an element of the hidden size: fitted.
    quantized: float = 0.0


MEGATRON = Kept(
    norm_input=2,
    norm_trained=0,
    fused_gate=True,
    expanded_kv=False,
    qkv_view=False,
    score=5,
    source="Korthikanti et al., arXiv 2205.05198 §4: 34 s b h + 5 a s^2 b for a GPT layer, taken apart",
)
TRANSFORMERS = Kept(
    norm_input=4,
    norm_trained=2,
    fused_gate=False,
    expanded_kv=False,
    qkv_view=False,
    score=6,
    source="transformers modeling_llama.py: RMSNorm in fp32, silu(gate) * up, softmax in fp32",
)
TORCHTUNE = replace(
    TRANSFORMERS, norm_trained=4, expanded_kv=True, source="torchtune modules: RMSNorm in fp32, k and v expanded"
)
LITGPT = Kept(
    norm_input=6,
    norm_trained=4,
    fused_gate=False,
    expanded_kv=True,
    qkv_view=True,
    score=5,
    source="litgpt model.py: RMSNorm in fp32 and its result, fused q/k/v with v as a view",
    quantized=5,
)
BY_ENGINE = {
    "megatron": MEGATRON,
    "nemo": MEGATRON,
    "fsdp": TRANSFORMERS,
    "ddp": TRANSFORMERS,
    "deepspeed": TRANSFORMERS,
    "transformers": TRANSFORMERS,
    "torchtune": TORCHTUNE,
    "litgpt": LITGPT,
}


def kept_by(run: TrainingRun) -> Kept:
    return _kept(run.engine, layer_norm=run.shape.layer_norm, compiled=run.compiled)


@cache
def _kept(engine: TrainingEngine, *, layer_norm: bool, compiled: bool) -> Kept:
    kept = BY_ENGINE[engine]
    if layer_norm:
        kept = replace(kept, norm_input=2, norm_trained=0)
    elif engine in {"megatron", "nemo"}:
        # Shapes with RMSNorm are trained without dropout: the softmax alone is kept.
        kept = replace(kept, score=2)
    if compiled:
        # The compiler recomputes elementwise work in the backward pass.
        kept = replace(kept, norm_input=2, norm_trained=0, fused_gate=True)
    return kept
