"""The memory of a training step: the fullest GPU at its fullest moment."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.gpus import Gpu
from planner.estimates import MemoryEstimate, Term
from planner.memory.activations import element_bytes, layer_bytes, sequence_shard
from planner.memory.gathered import gathered_terms
from planner.memory.kept import kept_by
from planner.memory.logits import logits_term
from planner.memory.overheads import outside_terms, workspace_term
from planner.memory.placement import Stage, stages
from planner.memory.quantized import unpacking_terms
from planner.memory.states import data_shard, state_terms, trained_groups, trained_on_stage
from planner.runs import TrainingRun

# Activations are counted, not measured: kernels of other versions keep a little more or less.
ACTIVATION_UNCERTAINTY = 0.15
# With activation offload: at work, and in transfer.
LAYERS_NOT_OFFLOADED = 2
# Elements that DeepSpeed's ZeRO steps at a time, with their gradients widened to fp32.
SUB_GROUP = 1e9
DEEPSPEED_STEP = "DeepSpeed sub_group_size 1e9: fp32 gradients of one group"
# FSDP recipes take the fused kernel, which has none.
FOREACH_ENGINES = frozenset({"transformers", "ddp", "litgpt"})
FOREACH = "PyTorch foreach AdamW: the root of the second moment and the quotient for all parameters at once"


def training_memory(run: TrainingRun, gpu: Gpu | None = None, *, stage: int | None = None) -> MemoryEstimate:
    """Bytes for a GPU of pipeline stage `stage` (negative from the end), or of the fullest one."""
    every = stages(run)
    chosen = _fullest_of_each_kind(every) if stage is None else [every[stage]]
    return max((_stage_memory(run, gpu, one) for one in chosen), key=lambda estimate: estimate.expected())


def _fullest_of_each_kind(every: list[Stage]) -> list[Stage]:
    """Of stages with the same layers and ends, the one with most micro-batches in flight: no other can be fuller."""
    fullest: dict[tuple[int, int, bool, bool], Stage] = {}
    for stage in every:
        kind = (stage.dense_layers, stage.expert_layers, stage.has_embedding, stage.has_head)
        if kind not in fullest or stage.micro_batches_in_flight > fullest[kind].micro_batches_in_flight:
            fullest[kind] = stage
    return list(fullest.values())


def _stage_memory(run: TrainingRun, gpu: Gpu | None, stage: Stage) -> MemoryEstimate:
    states, kept = list(state_terms(run, stage)), list(activation_terms(run, stage))
    moments = [
        [*_held(run, states), *kept, *_loss(run, stage)],
        [*_held(run, states), *kept, *_layer_backward(run, stage)],
        [*states, *_step(run, stage)],
    ]
    fullest = max(moments, key=lambda terms: sum(term.expected for term in terms))
    fullest.append(workspace_term(gpu))
    allocated = sum(term.expected for term in fullest)
    fullest.extend(outside_terms(allocated, gpus=run.layout.gpus))
    return MemoryEstimate(tuple(term for term in fullest if term.high))


def _loss(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    """The backward pass begins: all that the forward pass kept is there, and the logits."""
    if stage.has_head:
        yield logits_term(run, tokens_per_gpu(run))
    yield from gathered_terms(run, stage, layers=False)
    yield from unpacking_terms(run)


def _layer_backward(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    """The logits are gone, and the last layer is gathered and computed again."""
    if run.checkpointing == "full":
        yield from recomputed_terms(run, stage)
    yield from gathered_terms(run, stage, layers=True)
    yield from unpacking_terms(run)


def _held(run: TrainingRun, states: list[Term]) -> list[Term]:
    return [term for term in states if term.key != "gradients" or _gradients_stay(run)]


def _step(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    """The optimizer steps: activations are gone, all gradients are there, and its temporaries."""
    if run.optimizer_offload:
        return
    if run.engine == "deepspeed":
        amount = 4 * min(trained_on_stage(run, stage) / data_shard(run), SUB_GROUP)
        yield Term.within("optimizer_step", amount, 0.5, formula="4 B x min(P / N, 1e9)", source=DEEPSPEED_STEP)
        yield from gathered_terms(run, stage, layers=True)
    elif run.engine in FOREACH_ENGINES:
        shard = data_shard(run) if run.layout.zero_stage else 1.0
        amount = sum(group.each.optimizer * group.parameters for group in trained_groups(run, stage)) / shard
        yield Term.within("optimizer_step", amount, 0.5, formula="the optimizer's states once more", source=FOREACH)


def _gradients_stay(run: TrainingRun) -> bool:
    """Engines with gradient buffers hold them always; plain PyTorch frees them with each step."""
    return run.engine in {"megatron", "nemo", "deepspeed"} or run.gradient_accumulation > 1


def tokens_per_gpu(run: TrainingRun) -> float:
    return run.micro_batch * run.sequence_length / run.layout.context


def activation_terms(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    """What the forward pass keeps. With offload only the layer at work and the one in transfer are on the card."""
    layers_in_flight = stage.layers * stage.micro_batches_in_flight
    share = min(1.0, LAYERS_NOT_OFFLOADED / layers_in_flight) if run.activation_offload and layers_in_flight else 1.0
    times = stage.micro_batches_in_flight * tokens_per_gpu(run) * share
    if run.checkpointing == "full":
        amount = element_bytes(run) * run.shape.hidden / sequence_shard(run) * stage.layers
        yield _activation("checkpoints", amount, times, run)
        return
    totals: dict[str, float] = {}
    for layers, experts in ((stage.dense_layers, False), (stage.expert_layers, True)):
        for kind, amount in layer_bytes(run, experts=experts).items() if layers else ():
            totals[kind] = totals.get(kind, 0) + layers * amount
    for kind, amount in totals.items():
        yield _activation(f"activations_{kind}", amount, times, run)


def recomputed_terms(run: TrainingRun, stage: Stage) -> Iterator[Term]:
    again = sum(layer_bytes(run, experts=stage.expert_layers > 0).values())
    yield _activation("recomputed_layer", again, tokens_per_gpu(run), run)


def _activation(key: str, per_token: float, tokens: float, run: TrainingRun) -> Term:
    formula = f"{per_token:.4g} B a token x {tokens:g} tokens"
    return Term.within(key, per_token * tokens, ACTIVATION_UNCERTAINTY, formula=formula, source=kept_by(run).source)
