"""Training that runs out of GPU memory: which part of the memory it was, and what gives most back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence, Kind, Line
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.memory_texts import OutOfMemory, outs_of_memory
from jobs.diagnosis.texts import says, trace_before

# Of the GPU: what another process has, or what lies unused between blocks, is the cause from here on.
OTHERS_SHARE, UNUSED_SHARE = 0.05, 0.05
LOADING = re.compile(
    r"from_pretrained|_load_state_dict|load_state_dict|load_checkpoint|device_map|_move_model_to_device|model\.to\(|\.cuda\(\)|init_empty|materialize|_load_pretrained|shard_checkpoint|dispatch_model|deepspeed\.initialize|FullyShardedDataParallel\(|fully_shard\(|_broadcast_model"
)
OPTIMIZER = re.compile(
    r"optimizer\.step|_init_group|exp_avg|torch/optim/|adamw?\.py|initialize_optimizer_states|zeros_like\("
)
LOGITS = re.compile(
    r"cross_entropy|log_softmax|logits\.float|lm_head|loss_function|ForCausalLMLoss|compute_loss_func|vocab_parallel"
)
BACKWARD = re.compile(r"\.backward\(|_engine_run_backward|checkpoint\.py|autograd/")
ATTENTION = re.compile(r"scaled_dot_product|softmax\(|eager_attention|attn_weights|torch\.matmul\(query")

Part = str
REMEDIES: dict[Part, tuple[str, ...]] = {
    "model": ("quantize_base", "shard_parameters", "offload_parameters", "more_gpus", "bigger_gpu"),
    "optimizer": ("shard_optimizer", "eight_bit_optimizer", "lora", "offload_optimizer", "more_gpus"),
    "logits": ("chunked_loss", "smaller_batch", "shorter_sequences"),
    "attention": ("flash_attention", "shorter_sequences", "smaller_batch"),
    "activations": ("smaller_batch", "checkpoint_activations", "shorter_sequences", "sequence_parallel", "more_gpus"),
    "fragmentation": ("expandable_segments", "smaller_batch"),
    "another_process": ("end_other_process", "other_gpu"),
    "unknown": ("smaller_batch", "checkpoint_activations", "shard_parameters", "more_gpus"),
}
# The planner's terms that each remedy makes smaller, and to what share of them.
SAVES: dict[str, tuple[tuple[str, float], ...]] = {
    "quantize_base": (("weights", 0.28),),
    "shard_optimizer": (("optimizer", 0.0),),
    "eight_bit_optimizer": (("optimizer", 0.25),),
    "offload_optimizer": (("optimizer", 0.0),),
    "offload_parameters": (("weights", 0.0),),
    "lora": (("optimizer", 0.02), ("gradients", 0.02)),
    "chunked_loss": (("logits", 0.05),),
    "checkpoint_activations": (("activations", 0.15),),
}
HALVED = ("activations", "checkpoints", "recomputed_layer", "logits")


def look(evidence: Evidence) -> Iterator[Finding]:
    """One finding of a run, however many ranks said it."""
    if evidence.kind is Kind.SERVING:
        return
    said = list(outs_of_memory(evidence.lines))
    if not said:
        return
    told = next((one for one in said if one.total), said[0])
    part = part_of(told, evidence)
    yield Finding(
        code=f"oom_{part}",
        sure=Sure.CERTAIN if part != "unknown" else Sure.LIKELY,
        because=tuple(_because(told, part, evidence)),
        remedies=tuple(remedy(code, evidence) for code in REMEDIES[part]),
        lines=tuple(one.line.number for one in said[:5]),
        gpus=tuple(sorted({one.gpu for one in said if one.gpu is not None})),
        since=told.line.at,
    )


def part_of(told: OutOfMemory, evidence: Evidence) -> Part:
    if told.total and told.others >= OTHERS_SHARE * told.total and told.others >= (told.tried or 0):
        return "another_process"
    if told.total and told.unused and told.tried and told.unused >= max(told.tried, UNUSED_SHARE * told.total):
        return "fragmentation"
    trace = trace_before(evidence.lines, told.line)
    return _by_trace(trace, has_stepped=_has_stepped(evidence, told.line))


def _by_trace(trace: tuple[Line, ...], *, has_stepped: bool) -> Part:
    """What was being done: the innermost frames say most."""
    inner = trace[-24:]
    if says(inner, OPTIMIZER):
        return "optimizer"
    if not has_stepped and says(trace, LOADING) and not says(inner, BACKWARD):
        return "model"
    if says(inner, LOGITS):
        return "logits"
    if says(inner, ATTENTION):
        return "attention"
    if says(trace, BACKWARD) or says(trace, re.compile(r"\bforward\b|_call_impl")) or has_stepped:
        return "activations"
    return "unknown"


def _has_stepped(evidence: Evidence, line: Line) -> bool:
    before = line.at if line.at is not None else float("inf")
    return any(point.step for at, point in evidence.points if at <= before)


def _because(told: OutOfMemory, part: Part, evidence: Evidence) -> Iterator[Reason]:
    if told.tried is not None:
        yield Reason("tried", {"bytes": told.tried, "free": told.free or 0, "total": told.total or 0})
    if part == "another_process":
        yield Reason("others", {"bytes": told.others})
    if part == "fragmentation":
        yield Reason("unused", {"bytes": told.unused or 0})
    if part in {"model", "optimizer"} and not _has_stepped(evidence, told.line):
        yield Reason("before_first_step")
    if evidence.predicted.memory_bytes is not None:
        yield Reason("predicted", {"bytes": evidence.predicted.memory_bytes})


def remedy(code: str, evidence: Evidence) -> Remedy:
    """With what it saves of one GPU, where the planner's terms of this run are known."""
    if code in {"smaller_batch", "shorter_sequences"}:
        known = [amount for name in HALVED if (amount := _of_terms(evidence, name)) is not None]
        batch = evidence.settings.get("batch_size")
        values = {"from": batch, "to": batch // 2} if code == "smaller_batch" and batch and batch > 1 else {}
        return Remedy(code, values, sum(known) / 2 if known else None)
    amounts = [(_of_terms(evidence, name), rest) for name, rest in SAVES.get(code, ())]
    saved = [amount * (1 - rest) for amount, rest in amounts if amount is not None]
    return Remedy(code, {}, sum(saved) if saved else None)


def _of_terms(evidence: Evidence, name: str) -> float | None:
    """The planner splits some into parts: "activations_mlp"."""
    parts = [amount for key, amount in evidence.predicted.terms.items() if key == name or key.startswith(f"{name}_")]
    return sum(parts) if parts else None
