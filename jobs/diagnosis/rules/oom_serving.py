"""Serving that runs out of GPU memory: as it starts, or under load. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobs.diagnosis.evidence import Evidence, Kind, Line
from jobs.diagnosis.finding import Finding, Reason, Sure
from jobs.diagnosis.memory_texts import OutOfMemory, outs_of_memory
from jobs.diagnosis.savings import ordered
from jobs.diagnosis.settings import setting
from jobs.diagnosis.texts import first, numbers_of, says, trace_before
from jobs.progress.numbers import whole

NO_BLOCKS = re.compile(
    r"No available memory for the cache blocks|Not enough memory\. Please try to increase --mem-fraction-static|unable to allocate (?:backend|CUDA\d+) buffer|"
    r"unable to allocate \w+ buffer for model|could not be created: KV cache|KV cache.*less than zero"
)
LONGEST = re.compile(
    r"max seq len \((?P<asked>[\d,]+)\) is larger than the maximum number of tokens that can be stored in KV cache \((?P<fits>[\d,]+)\)"
    r"|To serve at least one request with the model(?:s)?'s max seq len \((?P<asked2>[\d,]+)\)(?:.*estimated maximum model length is (?P<fits2>[\d,]+))?"
    r"|Not enough memory to handle (?P<asked3>\d+) total tokens|failed to allocate (?:buffer for kv cache|compute buffers)"
)
NOT_FREE = re.compile(r"[Ff]ree memory on device .*is less than desired GPU memory utilization")
TOO_MANY_AT_ONCE = re.compile(r"Decode out of memory\. Try to lower")
PREFILL = re.compile(r"Prefill out of memory\. Try to lower|Not enough memory to handle \d+ prefill tokens")
WARMING_UP = re.compile(
    r"out of memory occurred when warming up sampler|[Cc]apturing CUDA graph|_dummy_run|profile_run|capture_model|determine_num_available_blocks|[Cc]apture cuda graph|warmup"
)
LOADING = re.compile(
    r"load_model|weight_loader|initialize_model|make_layers|in __init__|load_weights|create_weights|_initialize_model|loading model tensors|loading failed with error"
)
SAMPLING = re.compile(
    r"_apply_top_k_top_p|sampler\.py|log_softmax|logits_processor|compute_logits|_apply_penalties|decode_batch"
)
PREFILLING = re.compile(
    r"prefill|vision|visual|multimodal|_process_image|get_multimodal_embeddings|image_embeds|encoder_outputs"
)
# What a server leaves to everything but weights and cache is too little from here on.
UTILIZATION = 0.93
NEAR_LINES = 60

REMEDIES: Mapping[str, tuple[str, ...]] = {
    "taken": ("end_other_process", "lower_memory_utilization"),
    "context": ("shorter_context", "kv_fp8", "higher_memory_utilization", "tensor_parallel", "more_gpus"),
    "weights": ("higher_memory_utilization", "quantize_weights", "tensor_parallel", "bigger_gpu"),
    "warmup": ("lower_memory_utilization", "fewer_sequences", "smaller_prefill", "eager"),
    "utilization": ("lower_memory_utilization", "fewer_sequences", "smaller_prefill"),
    "concurrency": ("fewer_sequences", "lower_memory_utilization", "kv_fp8", "another_replica"),
    "prefill": ("smaller_prefill", "chunked_prefill", "lower_memory_utilization"),
    "running": ("lower_memory_utilization", "fewer_sequences", "smaller_prefill", "kv_fp8"),
}


def look(evidence: Evidence) -> Iterator[Finding]:
    """One: what an engine says itself is nearer to the cause than the failing allocation."""
    if evidence.kind is Kind.SERVING and (found := _said(evidence) or _failed(evidence)) is not None:
        yield found


def _said(evidence: Evidence) -> Finding | None:
    lines = evidence.lines
    if (hit := first(lines, LONGEST)) is not None:
        groups = {name.rstrip("23"): whole(text) for name, text in hit[1].groupdict().items() if text}
        because = (Reason("context", dict(groups)),) if {"asked", "fits"} <= set(groups) else ()  # type: ignore[arg-type]
        return _finding("context", hit[0], because, evidence)
    named = (("taken", NOT_FREE), ("weights", NO_BLOCKS), ("concurrency", TOO_MANY_AT_ONCE), ("prefill", PREFILL))
    for kind, pattern in named:
        if (hit := first(lines, pattern)) is not None:
            return _finding(kind, hit[0], (), evidence)
    return None


def _failed(evidence: Evidence) -> Finding | None:
    told = next(outs_of_memory(evidence.lines), None)
    if told is None:
        return None
    kind = kind_of(told, evidence)
    because: list[Reason] = []
    if told.tried is not None and told.total is not None:
        because.append(Reason("tried", {"bytes": told.tried, "free": told.free or 0, "total": told.total}))
    if kind == "taken":
        because.append(Reason("others", {"bytes": told.others}))
    if kind == "utilization":
        because.append(Reason("utilization", {"share": setting(evidence, "gpu_memory_utilization") or 0.0}))
    return _finding(kind, told.line, tuple(because), evidence, missing=told.missing)


def kind_of(told: OutOfMemory, evidence: Evidence) -> str:
    """By where it happened; under load, by what was being computed."""
    if told.total and told.others >= 0.1 * told.total and told.others >= (told.tried or 0):
        return "taken"
    near = [line for line in evidence.lines if abs(line.number - told.line.number) < NEAR_LINES]
    trace = trace_before(evidence.lines, told.line)
    if says(near, WARMING_UP):
        return "warmup"
    if says(trace, LOADING) and not _has_served(evidence):
        return "weights"
    if (setting(evidence, "gpu_memory_utilization") or 0.0) >= UTILIZATION:
        return "utilization"
    if says(trace, SAMPLING):
        return "concurrency"
    return "prefill" if says(trace, PREFILLING) else "running"


def _has_served(evidence: Evidence) -> bool:
    return bool(evidence.serving and evidence.serving.requests and max(evidence.serving.requests.values) > 0)


def _finding(
    kind: str, line: Line, because: tuple[Reason, ...], evidence: Evidence, *, missing: float | None = None
) -> Finding:
    remedies = ordered(REMEDIES[kind], evidence, missing=missing)
    return Finding(f"oom_serving_{kind}", Sure.CERTAIN, because, remedies, numbers_of([line]), since=line.at)
