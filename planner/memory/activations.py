"""Activations of one layer for one token, in bytes on one GPU, by what keeps them."""

from __future__ import annotations

from planner.memory.elements import BITSANDBYTES
from planner.memory.kept import Kept, kept_by
from planner.parameters import attention_width
from planner.runs import TrainingRun

# Half-precision activations; fp32 training doubles them.
HALF = 2.0


def element_bytes(run: TrainingRun) -> float:
    return 4.0 if run.compute_dtype == "fp32" else HALF


def sequence_shard(run: TrainingRun) -> int:
    """What tensor parallelism divides only with sequence parallelism: norms, dropouts, residuals."""
    return run.layout.tensor if run.layout.sequence_parallel else 1


def layer_bytes(run: TrainingRun, *, experts: bool) -> dict[str, float]:
    """Everything that one layer keeps for a token, nothing checkpointed."""
    kept = kept_by(run)
    scale = element_bytes(run) / HALF
    kinds = {
        "norms": _norms(run, kept),
        "attention": _attention(run, kept),
        "scores": _scores(run, kept),
        "mlp": _experts(run, kept) if experts else _mlp(run, kept, run.shape.intermediate),
        "adapters": _adapters(run),
    }
    return {kind: scale * amount for kind, amount in kinds.items() if amount}


def recomputes(run: TrainingRun, module: str) -> bool:
    """Whether selective checkpointing drops a module by Megatron's name; without names it drops the attention core alone."""
    if run.checkpointing != "selective":
        return False
    return module in run.recompute_modules if run.recompute_modules else module == "core_attn"


def _trains(run: TrainingRun) -> bool:
    return run.lora is None


def _keeps_inputs(run: TrainingRun) -> bool:
    """A frozen 16-bit matrix needs no input for its gradient; bitsandbytes keeps it all the same (MatMul4Bit saves A)."""
    return _trains(run) or run.weight_format in BITSANDBYTES


def _input_bytes(run: TrainingRun) -> float:
    """Of a matrix product's input as it is kept: Transformer Engine keeps the FP8 copy that it computed with."""
    return 1.0 if run.compute_dtype == "fp8" else HALF


def _norms(run: TrainingRun, kept: Kept) -> float:
    hidden = run.shape.hidden
    # Parallel attention and MLP (no second norm) are rare: two norms are counted.
    norm = kept.norm_input + (kept.norm_trained if _trains(run) else 0)
    if recomputes(run, "layernorm"):
        # The inputs stay, one for both norms where the residual is added in place.
        norm /= 2
    masks = 2.0 if run.shape.layer_norm and run.engine in {"megatron", "nemo"} else 0.0
    quantized = kept.quantized if run.weight_format in BITSANDBYTES else 0.0
    return hidden * (2 * norm + masks + quantized) / sequence_shard(run)


def _attention(run: TrainingRun, kept: Kept) -> float:
    shape, tensor = run.shape, run.layout.tensor
    if shape.latent:
        return _latent(run)
    query, key_value = attention_width(shape), shape.kv_heads * shape.head_dim
    seen = query if kept.expanded_kv else key_value
    inputs = _input_bytes(run) * shape.hidden / sequence_shard(run) if _keeps_inputs(run) else 0.0
    own = HALF * (query + 2 * seen + query)
    view = HALF * (query + key_value) if kept.qkv_view and shape.kv_heads == shape.heads else 0.0
    return inputs + (own + view) / tensor


def _latent(run: TrainingRun) -> float:
    """Both compressed vectors, q and k with their rotated parts (made by concatenation: twice), v and the output."""
    shape, tensor = run.shape, run.layout.tensor
    latent = shape.latent
    assert latent
    compressed = (latent.query_rank or 0) + latent.kv_rank + latent.rope_dim
    key, value = latent.nope_dim + latent.rope_dim, latent.value_dim
    wide = shape.heads * ((0 if recomputes(run, "mla_up_proj") else 4 * key + value) + value)
    narrow = _input_bytes(run) * (shape.hidden + compressed) + HALF * compressed
    return narrow / sequence_shard(run) + HALF * wide / tensor


def _scores(run: TrainingRun, kept: Kept) -> float:
    if run.attention != "eager":
        # A log-sum-exp in fp32 for each head.
        return 4 * run.shape.heads / run.layout.tensor
    if recomputes(run, "core_attn"):
        return 0.0
    return kept.score * run.shape.heads * run.sequence_length / run.layout.context / run.layout.tensor


def _mlp(run: TrainingRun, kept: Kept, intermediate: int) -> float:
    tensor = run.layout.tensor
    inputs = _input_bytes(run) * run.shape.hidden / sequence_shard(run) if _keeps_inputs(run) else 0.0
    wide = 0.0 if recomputes(run, "mlp") else intermediate * _mlp_bytes(run, kept) / tensor
    return inputs + wide


def _mlp_bytes(run: TrainingRun, kept: Kept, *, recomputed: bool = False) -> float:
    """For an element of the MLP's width: what the activation and the gate's product keep, and the input of the last matrix."""
    product = _input_bytes(run) if _keeps_inputs(run) and not recomputed else 0.0
    if not run.shape.gated_mlp:
        return HALF + product
    return HALF * (2 if kept.fused_gate else 3) + product


def _experts(run: TrainingRun, kept: Kept) -> float:
    """Balanced routing: each GPU computes `active` copies of its own tokens' worth, gathered over the expert-tensor group."""
    shape, layout = run.shape, run.layout
    experts = shape.experts
    assert experts
    expert_tensor = layout.expert_tensor or layout.tensor
    copies = experts.active * expert_tensor / sequence_shard(run)
    wide = experts.intermediate * _mlp_bytes(run, kept, recomputed=recomputes(run, "moe_act")) / expert_tensor
    routed = (_input_bytes(run) + HALF) * shape.hidden + wide
    router = (HALF * shape.hidden + 8 * experts.count) / sequence_shard(run)
    shared = _mlp(run, kept, experts.shared_intermediate) if experts.shared_intermediate else 0.0
    return copies * routed + router + shared


def _adapters(run: TrainingRun) -> float:
    """Each adapter keeps a dropped copy of its input with a mask; fused q/k/v shares one."""
    if run.lora is None:
        return 0.0
    shape, names = run.shape, set(run.lora.targets)
    attention = {"q", "k", "v"} & names
    shared = 1 if run.engine == "litgpt" and attention else len(attention)
    widths = shared * shape.hidden + (attention_width(shape) if "o" in names else 0)
    widths += len({"gate", "up"} & names) * shape.hidden + (shape.intermediate if "down" in names else 0)
    return (HALF + 1) * widths
