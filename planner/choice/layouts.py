"""Every way to spread a run over a number of GPUs that can work, simplest first.

What must divide: tensor parallelism the heads, the cached heads (or those are copied), the intermediate sizes and the vocabulary; pipeline
parallelism the layers; experts their count. Tensor parallelism stays inside a node, and inside the NVLink domain where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.runs import Layout, Method, Offload, ZeroStage
from planner.shapes import ModelShape

# Sequences from this length are worth splitting: below it a GPU's attention is too short to hide the exchange.
CONTEXT_PARALLEL_FROM = 32_768
ZERO_STAGES: tuple[ZeroStage, ...] = (0, 1, 2, 3)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def counts_up_to(most: int) -> list[int]:
    return [count for count in COUNTS if count <= most]


def tensor_sizes(shape: ModelShape, *, most: int) -> list[int]:
    """Powers of two by which every split dimension can be divided."""
    return [size for size in (1, 2, 4, 8) if size <= most and _divides(shape, size)]


def _divides(shape: ModelShape, size: int) -> bool:
    experts = shape.experts
    widths = [shape.heads, shape.intermediate, shape.vocab]
    if experts:
        widths += [experts.intermediate, experts.shared_intermediate or size]
    # Fewer cached heads than ranks: each is kept several times. Latent attention keeps its one vector on every rank.
    copied = shape.latent is not None or size % shape.kv_heads == 0
    return all(width % size == 0 for width in widths) and (copied or shape.kv_heads % size == 0)


def pipeline_sizes(shape: ModelShape, *, most: int) -> list[int]:
    return [size for size in (1, 2, 4, 8, 16) if size <= most and shape.layers % size == 0]


def context_sizes(sequence_length: int, *, most: int) -> list[int]:
    if sequence_length < CONTEXT_PARALLEL_FROM:
        return [1]
    return [size for size in (1, 2, 4, 8) if size <= most and sequence_length // size >= CONTEXT_PARALLEL_FROM // 4]


def training_layouts(
    shape: ModelShape, *, method: Method, sequence_length: int, global_batch: int, gpus: int, domain: int
) -> Iterator[Layout]:
    """Layouts of exactly `gpus` GPUs, in the order of the advice: data parallelism, ZeRO, tensor, pipeline."""
    yield from _data_parallel(gpus, global_batch)
    if method == "full":
        for context in context_sizes(sequence_length, most=gpus)[1:]:
            yield from _context_parallel(shape, context=context, gpus=gpus, domain=domain, global_batch=global_batch)
        yield from _model_parallel(shape, gpus=gpus, domain=domain, global_batch=global_batch)


def _data_parallel(gpus: int, global_batch: int) -> Iterator[Layout]:
    if gpus > global_batch:
        return
    for stage in ZERO_STAGES[:1] if gpus == 1 else ZERO_STAGES:
        yield Layout(data=gpus, zero_stage=stage)


def _context_parallel(
    shape: ModelShape, *, context: int, gpus: int, domain: int, global_batch: int
) -> Iterator[Layout]:
    """Long sequences are cut, and the matrices too where that is not enough; the optimizer is sharded over all ranks."""
    for tensor in tensor_sizes(shape, most=min(gpus // context, domain)):
        data, rest = divmod(gpus, tensor * context)
        if not rest and data <= global_batch:
            yield Layout(data=data, tensor=tensor, context=context, zero_stage=1, sequence_parallel=tensor > 1)


def offloading_layouts(*, gpus: int, global_batch: int, offload: Offload) -> Iterator[Layout]:
    """DeepSpeed moves an optimizer to the machine's memory from ZeRO-1 on, and weights under ZeRO-3; a single GPU has nothing to split."""
    stages = ZERO_STAGES[3:] if offload == "all" else ZERO_STAGES[2:3] if gpus == 1 else ZERO_STAGES[1:]
    if gpus <= global_batch:
        for stage in stages:
            yield Layout(data=gpus, zero_stage=stage)


def _model_parallel(shape: ModelShape, *, gpus: int, domain: int, global_batch: int) -> Iterator[Layout]:
    """Tensor before pipeline, small before large; the rest is data parallel with a sharded optimizer."""
    for pipeline in pipeline_sizes(shape, most=gpus):
        for tensor in tensor_sizes(shape, most=min(gpus // pipeline, domain)):
            data, rest = divmod(gpus, tensor * pipeline)
            if tensor * pipeline == 1 or rest or data > global_batch or global_batch // data < pipeline:
                continue
            for expert in _expert_sizes(shape, data=data, domain=domain):
                yield Layout(
                    data=data,
                    tensor=tensor,
                    pipeline=pipeline,
                    expert=expert,
                    zero_stage=1,
                    sequence_parallel=tensor > 1,
                )


def _expert_sizes(shape: ModelShape, *, data: int, domain: int) -> list[int]:
    """Experts are spread inside the data-parallel ranks: not at all, or as far as a domain goes."""
    if not shape.experts:
        return [1]
    widest = max(
        size for size in (1, 2, 4, 8, 16, 32, 64) if size <= min(data, domain) and shape.experts.count % size == 0
    )
    return sorted({1, widest})


def serving_layouts(shape: ModelShape, *, gpus: int, domain: int) -> Iterator[Layout]:
    """One copy of the model over `gpus` GPUs: tensor parallel inside the domain, pipeline between domains."""
    for pipeline in pipeline_sizes(shape, most=gpus):
        tensor, rest = divmod(gpus, pipeline)
        if not rest and tensor in tensor_sizes(shape, most=domain):
            yield Layout(tensor=tensor, pipeline=pipeline)
