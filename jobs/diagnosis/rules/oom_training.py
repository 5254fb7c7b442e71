"""Training that runs out of GPU memory: which part of the memory it was, and what gives most back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jobs.diagnosis.evidence import Evidence, Kind, Line
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure
from jobs.diagnosis.memory_texts import OutOfMemory, outs_of_memory
from jobs.diagnosis.savings import ordered
from jobs.diagnosis.settings import setting
from jobs.diagnosis.texts import numbers_of, says, trace_before

# Of the GPU: what another process has, or what lies unused between blocks, is the cause from here on.
OTHERS_SHARE, UNUSED_SHARE = 0.05, 0.05
LOADING = re.compile(
    r"from_pretrained|_load_state_dict|load_state_dict|load_checkpoint|device_map|_move_model_to_device|model\.to\(|\.cuda\(\)|init_empty|materialize|_load_pretrained"
    r"|shard_checkpoint|dispatch_model|deepspeed\.initialize|FullyShardedDataParallel\(|fully_shard\(|_broadcast_model|prepare_model|get_peft_model"
)
SAVING = re.compile(
    r"_?save_checkpoint|save_model|save_pretrained|_save_to_state_dict|full_state_dict|FullStateDict|_gather_state|_zero3_consolidated|consolidated_16bit|save_16bit_model"
)
EVALUATION = re.compile(
    r"evaluation_loop|prediction_loop|prediction_step|nested_concat|pad_across_processes|validation_step|\.evaluate\(|in evaluate\b|_maybe_log_save_evaluate|in validate\b"
)
BACKWARD = re.compile(r"\.backward\(|_engine_run_backward|in backward\b|autograd/|utils/checkpoint\.py")
FORWARD = re.compile(r"\bin forward\b|\bforward\b|_call_impl|forward_call")
# From the innermost frame outwards, what was being done.
OPTIMIZER = re.compile(
    r"_init_group|exp_avg|torch/optim/(?!lr_scheduler|optimizer)|adamw?\w*\.py|bitsandbytes/optim|initialize_optimizer_states|_foreach_|optimizer\.step|hybrid_adam"
)
LOGITS = re.compile(
    r"cross_entropy|log_softmax|logits\.float|logits\.clone|output\.float\(\)|lm_head|loss_function|ForCausalLMLoss|compute_loss_func|vocab_parallel|compute_log_probs|selective_log_softmax"
)
ATTENTION = re.compile(
    r"scaled_dot_product|softmax\(|eager_attention|attn_weights|attention_scores|torch\.matmul\(query|torch\.baddbmm\(|scores @"
)
# Frames around a call of a module: what lies further out is not what ran out of memory.
NEAR_FRAMES = 14

Part = str
REMEDIES: Mapping[Part, tuple[str, ...]] = {
    "model": ("quantize_base", "shard_parameters", "offload_parameters", "more_gpus", "bigger_gpu"),
    "optimizer": ("shard_optimizer", "eight_bit_optimizer", "lora", "offload_optimizer", "more_gpus"),
    "logits": ("chunked_loss", "smaller_batch", "shorter_sequences"),
    "attention": ("flash_attention", "shorter_sequences", "smaller_batch"),
    "batch": ("smaller_batch", "checkpoint_activations", "shorter_sequences", "sequence_parallel", "more_gpus"),
    "activations": ("checkpoint_activations", "shorter_sequences", "smaller_batch", "sequence_parallel", "more_gpus"),
    "evaluation": ("smaller_eval_batch", "move_predictions", "fewer_predictions"),
    "saving": ("sharded_checkpoint", "checkpoint_to_cpu", "empty_cache_before"),
    "fragmentation": ("expandable_segments", "smaller_batch"),
    "another_process": ("end_other_process", "other_gpu"),
    "unknown": ("smaller_batch", "checkpoint_activations", "shard_parameters", "more_gpus"),
}


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
        remedies=_remedies(told, part, evidence),
        lines=numbers_of(one.line for one in said),
        gpus=tuple(sorted({one.gpu for one in said if one.gpu is not None})),
        since=told.line.at,
    )


def part_of(told: OutOfMemory, evidence: Evidence) -> Part:
    if told.total and told.others >= OTHERS_SHARE * told.total and told.others >= (told.tried or 0):
        return "another_process"
    if told.total and told.unused and told.tried and told.unused >= max(told.tried, UNUSED_SHARE * told.total):
        return "fragmentation"
    part = by_trace(trace_before(evidence.lines, told.line), has_stepped=_has_stepped(evidence, told.line))
    return "batch" if part == "activations" and (setting(evidence, "batch_size") or 1) > 1 else part


def by_trace(trace: Sequence[Line], *, has_stepped: bool) -> Part:
    """What was being done, as the frames say; a run that steps and says nothing else ran out with its activations."""
    goes_back = says(trace, BACKWARD)
    if says(trace, SAVING):
        return "saving"
    if says(trace, EVALUATION) and not goes_back:
        return "evaluation"
    inner = innermost(trace)
    if inner is not None and not (inner == "optimizer" and goes_back and not says(trace[-NEAR_FRAMES:], OPTIMIZER)):
        return inner
    if not has_stepped and says(trace, LOADING) and not goes_back:
        return "model"
    if goes_back or says(trace, FORWARD) or has_stepped:
        return "activations"
    return "unknown"


def innermost(trace: Sequence[Line]) -> Part | None:
    """Of what names a part of the memory, that which is nearest to the failure, no further out than around one call of a module."""
    left = len(trace)
    for line in reversed(trace):
        for part, pattern in (("attention", ATTENTION), ("logits", LOGITS), ("optimizer", OPTIMIZER)):
            if pattern.search(line.text):
                return part
        if BACKWARD.search(line.text):
            return None
        if FORWARD.search(line.text):
            left = min(left, NEAR_FRAMES)
        left -= 1
        if left <= 0:
            return None
    return None


def _has_stepped(evidence: Evidence, line: Line) -> bool:
    before = line.at if line.at is not None else float("inf")
    return any(point.step for at, point in evidence.points if at <= before)


def _because(told: OutOfMemory, part: Part, evidence: Evidence) -> Iterator[Reason]:
    if told.tried is not None and told.total is not None:
        yield Reason("tried", {"bytes": told.tried, "free": told.free or 0, "total": told.total})
    if part == "another_process":
        yield Reason("others", {"bytes": told.others})
    if part == "fragmentation":
        yield Reason("unused", {"bytes": told.unused or 0})
    if part == "batch" and (batch := setting(evidence, "batch_size")):
        yield Reason("batch", {"batch": int(batch)})
    if part in {"model", "optimizer"} and not _has_stepped(evidence, told.line):
        yield Reason("before_first_step")
    if part in {"batch", "activations", "logits"} and (last := _last_step(evidence, told.line)):
        yield Reason("went_well", {"step": last})
    if evidence.predicted.memory_bytes is not None:
        yield Reason("predicted", {"bytes": evidence.predicted.memory_bytes})


def _last_step(evidence: Evidence, line: Line) -> int | None:
    before = line.at if line.at is not None else float("inf")
    steps = [point.step for at, point in evidence.points if at <= before and point.step]
    return steps[-1] if steps else None


def _remedies(told: OutOfMemory, part: Part, evidence: Evidence) -> tuple[Remedy, ...]:
    """Of a GPU that others hold, or whose memory is in pieces, the message itself says what comes back."""
    frees = {"expandable_segments": told.unused, "end_other_process": told.others}
    found = ordered(REMEDIES[part], evidence, missing=told.missing)
    return tuple(
        Remedy(one.code, one.values, float(frees[one.code] or 0) or None) if one.code in frees else one for one in found
    )
