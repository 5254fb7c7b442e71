"""Logits and loss: the widest tensors of a step, as wide as the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from planner.estimates import Term
from planner.memory.placement import padded_vocabulary
from planner.runs import TrainingRun


@dataclass(frozen=True, slots=True)
class PerLogit:
    """Bytes a logit at the peak, at the start of the backward pass, and what they are."""

    bytes: float
    what: str


MEGATRON = PerLogit(
    6, "bf16 logits 2, softmax in fp32 that becomes its own gradient 4 (Megatron vocab_parallel_cross_entropy)"
)
MEGATRON_FUSED = PerLogit(
    14, "bf16 logits 2, and fp32 copies 12 that the fused functions make anew (Megatron fused_cross_entropy)"
)
CHUNKED_LITGPT = PerLogit(
    9, "bf16 logits of all chunks, their log-softmax and gradients (fitted on large vocabularies)"
)
CHUNKED_COMPILED = PerLogit(4, "bf16 logits 2 and their gradient 2: the compiled loss recomputes its softmax")
CHUNKED = PerLogit(7, "bf16 logits 2, fp32 log-softmax 4, fp32 gradient of one chunk in eight 1")
FUSED = PerLogit(
    4, "bf16 logits 2, overwritten by their gradient, and a copy 2 (fused cross entropy of FlashAttention or Liger)"
)
HALF_ONLY = PerLogit(8, "16-bit logits, shifted copy, log-softmax and gradient (no autocast over a GPTQ base)")
MIXED = PerLogit(14, "bf16 logits 2, fp32 copy 4, log-softmax 4, gradient 4 (autocast computes the loss in fp32)")


def per_logit(run: TrainingRun) -> PerLogit:
    if run.engine in {"megatron", "nemo"}:
        return MEGATRON_FUSED if run.engine_options.get("cross_entropy_loss_fusion") else MEGATRON
    if run.logits == "fused":
        return FUSED
    if run.logits == "chunked":
        return _chunked(run)
    return HALF_ONLY if run.weight_format.startswith("gptq") else MIXED


def _chunked(run: TrainingRun) -> PerLogit:
    if run.engine == "litgpt":
        return CHUNKED_LITGPT
    return CHUNKED_COMPILED if run.compiled else CHUNKED


def logits_term(run: TrainingRun, tokens: float) -> Term:
    per = per_logit(run)
    vocab = padded_vocabulary(run.shape, run.layout) if run.engine in {"megatron", "nemo"} else run.shape.vocab
    amount = per.bytes * tokens * vocab / run.layout.tensor
    # Each further prediction keeps its softmax until its own backward pass.
    amount += 4 * run.shape.prediction_layers * tokens * vocab / run.layout.tensor
    return Term.within(
        "logits",
        amount,
        0.15,
        formula=f"{per.bytes:g} B x s b / c x V / t = {per.bytes:g} x {tokens:g} x {vocab} / {run.layout.tensor}",
        source=per.what,
    )
