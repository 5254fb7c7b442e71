"""What a remedy gives back of one GPU's memory, by the terms that the planner reckoned for this run; remedies that do nothing here are left out, and those that
are not enough come after those that are. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Remedy, Value
from jobs.diagnosis.settings import setting

# The planner's terms that a remedy makes smaller, and to what share of them.
SHRINKS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "quantize_base": (("weights", 0.28),),
    "eight_bit_optimizer": (("optimizer", 0.25),),
    "offload_optimizer": (("optimizer", 0.0),),
    "offload_parameters": (("weights", 0.0),),
    "lora": (("optimizer", 0.02), ("gradients", 0.02), ("optimizer_step", 0.02)),
    "chunked_loss": (("logits", 0.05),),
    "checkpoint_activations": (("activations", 0.15),),
    "kv_fp8": (("kv_cache", 0.5),),
    "quantize_weights": (("weights", 0.28),),
    "tensor_parallel": (("weights", 0.5), ("kv_cache", 0.5)),
}
# Divided among the GPUs that there are.
SHARDS: Mapping[str, tuple[str, ...]] = {
    "shard_optimizer": ("optimizer",),
    "shard_parameters": ("weights", "gradients", "optimizer"),
    "sequence_parallel": ("activations", "checkpoints", "logits"),
}
# The stage of ZeRO from which it is so already.
SHARDED_FROM = {"shard_optimizer": 1, "shard_parameters": 3}
# What a batch or a sequence of half the size halves.
OF_TOKENS = ("activations", "checkpoints", "recomputed_layer", "logits")
_ALREADY: Mapping[str, tuple[str, ...]] = {"checkpoint_activations": ("checkpoints", "recomputed_layer")}


def ordered(codes: Iterable[str], evidence: Evidence, *, missing: float | None = None) -> tuple[Remedy, ...]:
    """`codes`: what is easiest first. `missing`: bytes that have to be given back, None = not known."""
    found = [remedy_of(code, evidence, missing) for code in codes if not _is_pointless(code, evidence)]
    kept = [one for one in found if one.saves_bytes is None or one.saves_bytes > 0]
    return tuple(sorted(kept, key=lambda one: _is_short(one, missing)))


def _is_short(remedy: Remedy, missing: float | None) -> bool:
    return missing is not None and remedy.saves_bytes is not None and remedy.saves_bytes < missing


def _is_pointless(code: str, evidence: Evidence) -> bool:
    if code in SHARDS:
        return len(evidence.gpus) == 1 or evidence.settings.get("zero_stage", 0) >= SHARDED_FROM.get(code, 9)
    if code == "lora":
        return "lora_rank" in evidence.settings
    if code == "smaller_batch":
        return setting(evidence, "batch_size") == 1
    return any(of_terms(evidence, name) for name in _ALREADY.get(code, ()))


def remedy_of(code: str, evidence: Evidence, missing: float | None = None) -> Remedy:
    if code in {"smaller_batch", "shorter_sequences"}:
        return _of_tokens(code, evidence, missing)
    if code in SHARDS:
        each = 1 / max(1, len(evidence.gpus))
        return Remedy(code, {}, _saved([(name, each) for name in SHARDS[code]], evidence) if evidence.gpus else None)
    return Remedy(code, _values(code, evidence), _saved(SHRINKS.get(code, ()), evidence))


def _of_tokens(code: str, evidence: Evidence, missing: float | None) -> Remedy:
    """Halved as often as it takes, down to one sample."""
    known = [amount for name in OF_TOKENS if (amount := of_terms(evidence, name)) is not None]
    whole = sum(known) if known else None
    batch = setting(evidence, "batch_size")
    if code != "smaller_batch" or batch is None or batch < 2:
        return Remedy(code, {}, whole / 2 if whole is not None else None)
    most = int(log2(batch))
    halvings = next(
        (n for n in range(1, most) if whole and whole * (1 - 0.5**n) >= (missing or 0)), most if whole else 1
    )
    values = {"from": int(batch), "to": int(batch) >> halvings}
    return Remedy(code, values, None if whole is None else whole * (1 - values["to"] / values["from"]))


def _values(code: str, evidence: Evidence) -> Mapping[str, Value]:
    """The setting as it is and as it should be."""
    if code == "lower_memory_utilization" and (now := setting(evidence, "gpu_memory_utilization")) and now > 0.2:
        return {"from": now, "to": round(now - 0.05, 2)}
    if code == "fewer_sequences" and (seqs := setting(evidence, "max_num_seqs")) and seqs >= 2:
        return {"from": int(seqs), "to": int(seqs) // 2}
    return {}


def _saved(terms: Iterable[tuple[str, float]], evidence: Evidence) -> float | None:
    amounts = [(of_terms(evidence, name), rest) for name, rest in terms]
    known = [amount * (1 - rest) for amount, rest in amounts if amount is not None]
    return sum(known) if known else None


def of_terms(evidence: Evidence, name: str) -> float | None:
    """The planner splits activations into parts: "activations_mlp"."""
    parts = [
        amount
        for key, amount in evidence.predicted.terms.items()
        if key == name or (name == "activations" and key.startswith("activations_"))
    ]
    return sum(parts) if parts else None
