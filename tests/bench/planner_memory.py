"""The planner's memory for a measured row, in the row's own quantity."""

from __future__ import annotations

from dataclasses import dataclass

from planner.estimates import Counter, MemoryEstimate
from planner.memory.cache import BLOCK_TOKENS, token_cache, tokens_in_pool
from planner.memory.serving import ServingMemory, serving_memory
from planner.memory.training import training_memory
from planner.runs import ServingRun, TrainingRun
from tests.bench.planner_rows import Measured, Skipped

# What lies between steps: Megatron logs it after each.
STATES = {"weights", "gradients", "master_weights", "optimizer", "fp8_copies", "workspaces"}
COUNTERS: dict[str, Counter] = {
    "peak_allocated_per_gpu": "allocated",
    # torchtune's "active" memory, and generation scripts that print max_memory_allocated.
    "peak_unspecified_per_gpu": "allocated",
    "infer_total": "allocated",
    "peak_reserved_per_gpu": "reserved",
    "peak_total_all_gpus": "device",
}
TERMS = {
    "weights_per_gpu": "weights",
    "activation_peak_per_gpu": "activation_peak",
    "nontorch_per_gpu": "runtime",
    "graph_per_gpu": "cuda_graphs",
}
OF_ALL_GPUS = {"peak_total_all_gpus", "infer_total"}


@dataclass(frozen=True, slots=True)
class Compared:
    """Both sides in bytes; tokens and blocks of a cache as the bytes they take."""

    predicted: float
    measured: float


def predict(row: Measured) -> Compared | Skipped:
    if isinstance(row.run, ServingRun):
        return _serving(row, row.run)
    estimate = training(row, row.run)
    if row.quantity == "model_states_per_gpu":
        return Compared(sum(term.expected for term in estimate.terms if term.key in STATES), row.value)
    return _of_estimate(row, estimate)


def training(row: Measured, run: TrainingRun) -> MemoryEstimate:
    """Megatron's log is written by the last rank, so that it shows the last pipeline stage."""
    return training_memory(run, row.gpu, stage=-1 if run.engine == "megatron" else None)


def needed_on_card(row: Measured) -> float:
    """Bytes of the fullest card as the driver counts them."""
    if isinstance(row.run, ServingRun):
        return serving_memory(row.run, row.gpu, total_memory=row.total_memory).estimate.expected()
    return training_memory(row.run, row.gpu).expected()


def _of_estimate(row: Measured, estimate: MemoryEstimate) -> Compared | Skipped:
    if row.quantity in TERMS:
        key = TERMS[row.quantity]
        return Compared(sum(term.expected for term in estimate.terms if term.key == key), row.value)
    if row.quantity not in COUNTERS:
        return Skipped(row.id, row.kind, row.source, f"quantity {row.quantity}")
    cards = row.gpus if row.quantity in OF_ALL_GPUS else 1
    return Compared(estimate.expected(COUNTERS[row.quantity]) * cards, row.value)


def _serving(row: Measured, run: ServingRun) -> Compared | Skipped:
    memory = serving_memory(run, row.gpu, total_memory=row.total_memory)
    if row.kind != "kv_cache":
        return _of_estimate(row, memory.estimate)
    if not (row.gpu or row.total_memory):
        return Skipped(row.id, row.kind, row.source, "card not stated")
    return _cache(row, run, memory)


def _cache(row: Measured, run: ServingRun, memory: ServingMemory) -> Compared:
    if row.quantity == "kv_pool_per_gpu":
        return Compared(memory.pool_bytes, row.value)
    token = token_cache(run.shape, run.layout, run.kv_dtype).bytes
    measured = row.value * (BLOCK_TOKENS if row.quantity == "kv_blocks" else 1)
    return Compared(memory.tokens * token, measured * token)


def tokens_of_measured_pool(row: Measured, pool: float) -> int:
    assert isinstance(row.run, ServingRun)
    return tokens_in_pool(row.run, pool)
