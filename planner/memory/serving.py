"""The memory of a server: weights, the pool for the cache, and what fits in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.estimates import MemoryEstimate, Term
from planner.memory.cache import sequence_bytes, tokens_in_pool
from planner.memory.elements import BITSANDBYTES, GIB, WEIGHT_BYTES, is_quantized
from planner.memory.engines import (
    GRAPHS_IN_PROFILE,
    GROWS_IN_PLACE,
    HIDDEN_FROM_RUNTIME,
    activation_peak,
    graphs,
    non_torch,
    prefill,
    version_of,
)
from planner.memory.overheads import outside_terms
from planner.parameters import count_parameters
from planner.runs import ServingEngine, ServingRun

CACHE = "2 x L x max(k / t, 1) x d x bytes"
# What TensorRT-LLM's own runtime and its largest engine buffers take before it measures what is free.
TENSORRT_RUNTIME = 1.5 * GIB


@dataclass(frozen=True, slots=True)
class ServingMemory:
    """`pool_bytes` for the cache on each GPU: of engines that take it at start; else what is left of the card.

    `tokens` of cache fit into it, `requests` of the run's prompt and output lengths at a time; `needed_bytes` is the cache of the
    run's own concurrency.
    """

    estimate: MemoryEstimate
    pool_bytes: float
    tokens: int
    requests: int
    needed_bytes: float

    @property
    def holds_the_load(self) -> bool:
        return self.needed_bytes <= self.pool_bytes


def serving_memory(run: ServingRun, gpu: Gpu | None, *, total_memory: float | None = None) -> ServingMemory:
    """`total_memory`: of one card in bytes as its runtime reports it, where that is known better than from the catalogue."""
    total = total_memory or (gpu.memory_bytes - HIDDEN_FROM_RUNTIME if gpu else 0.0)
    fixed = [weights(run), *_ENGINES[run.engine](run, gpu)]
    pool = _pool(run, fixed, total)
    request = sequence_bytes(run, run.prompt_tokens + run.output_tokens)
    needed = request * run.concurrency
    held = pool if _takes_pool(run) else needed
    copies = 2 if run.engine == "transformers" and version_of(run) < GROWS_IN_PLACE else 1
    cache = Term.exact("kv_cache", max(0.0, held * copies), formula=f"{CACHE} x tokens", source="shape")
    # Engines with a pool measure what they need beside tensors; eager ones live with the allocator.
    outside = (
        ()
        if _takes_pool(run)
        else outside_terms(sum(term.expected for term in (*fixed, cache)), gpus=run.layout.tensor)
    )
    return ServingMemory(
        estimate=MemoryEstimate((*fixed, cache, *outside)),
        pool_bytes=pool,
        tokens=tokens_in_pool(run, pool),
        requests=int(max(0.0, pool) // request) if request else 0,
        needed_bytes=needed,
    )


def weights(run: ServingRun) -> Term:
    """Per GPU: embeddings, head and norms stay in 16 bits; quantization covers the matrices of the layers."""
    counts, layout = count_parameters(run.shape), run.layout
    linear = counts.layers + counts.vision
    rest = counts.ends + (counts.embedding if _stores_both_ends(run) else 0)
    plain = 4.0 if run.weight_format == "fp32" else 2.0
    if run.engine == "litgpt" and run.weight_format in BITSANDBYTES:
        linear, rest = linear + counts.embedding, rest - counts.embedding
    size = _linear_bytes(run)
    amount = (linear * size + rest * plain) / (layout.tensor * layout.pipeline)
    formula = f"({size:g} B x {linear:.4g} + {plain:g} B x {rest:.4g}) / (t {layout.tensor} x p {layout.pipeline})"
    return Term.within("weights", amount, 0.01, formula=formula, source=run.shape.source or "shape")


def _stores_both_ends(run: ServingRun) -> bool:
    """Of tied embeddings: litgpt always; transformers where a model was quantized to FP8 layer by layer."""
    apart = run.engine == "litgpt" or (run.engine == "transformers" and run.weight_format == "fp8")
    return run.shape.tied_embeddings and apart


def _linear_bytes(run: ServingRun) -> float:
    if not is_quantized(run.weight_format):
        return 4.0 if run.weight_format == "fp32" else 2.0
    # vLLM loads bitsandbytes checkpoints as they are published: with double quantization.
    return WEIGHT_BYTES["nf4-dq" if run.engine == "vllm" and run.weight_format == "nf4" else run.weight_format]


def _takes_pool(run: ServingRun) -> bool:
    return run.engine in {"vllm", "sglang", "tensorrt-llm"}


def _pool(run: ServingRun, fixed: list[Term], total: float) -> float:
    taken = {term.key: term.expected for term in fixed}
    if run.engine == "vllm" and version_of(run) < GRAPHS_IN_PROFILE:
        taken.pop("cuda_graphs", None)
    if run.engine == "tensorrt-llm":
        return run.memory_utilization * (total - sum(taken.values()))
    share = run.memory_utilization if _takes_pool(run) else 1.0
    if run.engine == "sglang":
        # mem_fraction_static covers weights and pool of what the runtime left.
        return share * total - taken["weights"] - taken["runtime"]
    return share * total - sum(taken.values())


def _vllm(run: ServingRun, gpu: Gpu | None) -> list[Term]:
    return [activation_peak(run, gpu), non_torch(run), graphs(run)]


def _tensorrt(run: ServingRun, gpu: Gpu | None) -> list[Term]:
    source = "TensorRT-LLM measures free memory after loading; fitted"
    runtime = Term.within("runtime", TENSORRT_RUNTIME, 0.5, formula="fixed", source=source, counter="device")
    return [activation_peak(run, gpu), runtime]


def _eager(run: ServingRun, _gpu: Gpu | None) -> list[Term]:
    return [prefill(run, run.concurrency * run.prompt_tokens)]


def _litgpt(run: ServingRun, gpu: Gpu | None) -> list[Term]:
    terms = _eager(run, gpu)
    if run.weight_format in BITSANDBYTES:
        head = 2 * 2.0 * run.shape.vocab * run.shape.hidden
        terms.append(
            Term.within(
                "dequantized",
                head,
                0.3,
                formula="2 x 2 B x V x h",
                source="bitsandbytes: the head in 16 bits, and a copy",
            )
        )
    return terms


_ENGINES: Mapping[ServingEngine, Callable[[ServingRun, Gpu | None], list[Term]]] = {
    "vllm": _vllm,
    "sglang": _vllm,
    "tensorrt-llm": _tensorrt,
    "transformers": _eager,
    "litgpt": _litgpt,
}
