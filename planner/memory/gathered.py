"""What data parallelism holds beside its shards: unsharded layers, communication buckets."""

from __future__ import annotations

from collections.abc import Iterator

from planner.estimates import Term
from planner.memory.elements import weight_bytes
from planner.memory.placement import Stage, local_parameters
from planner.parameters import count_parameters
from planner.runs import TrainingRun

# DeepSpeed's defaults, in elements: stage3_max_live_parameters, reduce_bucket_size and allgather_bucket_size.
MAX_LIVE_PARAMETERS = 1e9
BUCKET_ELEMENTS = 5e8
# FSDP: the layer at work and the one that is fetched ahead.
LAYERS_UNSHARDED = 2
DEEPSPEED = "DeepSpeed configuration defaults"


def gathered_terms(run: TrainingRun, stage: Stage, *, layers: bool) -> Iterator[Term]:
    """`layers`: a layer is at work; else the output embedding is."""
    if run.layout.data == 1 and run.engine != "deepspeed":
        return
    if run.layout.zero_stage == 3:
        yield _unsharded(run, stage, layers=layers)
    elif run.engine == "deepspeed" and run.layout.zero_stage:
        yield _buckets(run, stage)
    elif run.engine in {"ddp", "transformers"}:
        yield _ddp(run)


def _unsharded(run: TrainingRun, stage: Stage, *, layers: bool) -> Term:
    counts, local = count_parameters(run.shape), local_parameters(run, stage)
    layer = counts.expert_layer if counts.expert_layers else counts.dense_layer
    ends = max(local.embedding, local.head)
    if run.engine == "deepspeed":
        amount = 2 * min(local.total, MAX_LIVE_PARAMETERS) + 2 * 2 * min(local.total, BUCKET_ELEMENTS)
        formula = "2 B x min(P, 1e9) live + 2 buckets x 2 B x 5e8"
        return Term.within("unsharded_weights", amount, 0.5, formula=formula, source=DEEPSPEED)
    if run.engine == "litgpt" and run.lora:
        amount = 2 * local.total + 2 * 2 * (layer + ends)
        return Term.within(
            "unsharded_weights",
            amount,
            0.1,
            formula="2 B x P: frozen weights are not resharded in the backward pass, beside a layer's gradient",
            source="PyTorch FSDP1 with mixed frozen parameters under use_orig_params",
        )
    size = weight_bytes(run.weight_format, run.engine)
    # The layer's full gradient lies beside it until it is reduced.
    gradient = 2.0 * layer if run.lora is None else 0.0
    if not layers:
        each = 2.0 if run.lora else 4.0
        return Term.within(
            "unsharded_weights", each * ends, 0.3, formula=f"{each:g} B x {ends:.4g}", source="FSDP: head, its gradient"
        )
    amount = LAYERS_UNSHARDED * size * layer + gradient
    formula = f"{LAYERS_UNSHARDED} x {size:g} B x layer {layer:.4g} + gradient {gradient:.4g}"
    return Term.within(
        "unsharded_weights", amount, 0.3, formula=formula, source="FSDP: layer at work and prefetched layer"
    )


def _buckets(run: TrainingRun, stage: Stage) -> Term:
    elements = min(BUCKET_ELEMENTS, local_parameters(run, stage).total if run.lora is None else 1e8)
    return Term.within("buckets", 2 * 2 * elements, 0.3, formula="2 buckets x 2 B x 5e8", source=DEEPSPEED)


def _ddp(run: TrainingRun) -> Term:
    trained = count_parameters(run.shape).total if run.lora is None else 0
    return Term.within(
        "buckets", 4.0 * trained, 0.2, formula="4 B x trained", source="PyTorch DDP without gradient_as_bucket_view"
    )
