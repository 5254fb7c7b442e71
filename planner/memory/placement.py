"""Which parameters lie on one GPU: pipeline stages, tensor and expert shards."""

from __future__ import annotations

from dataclasses import dataclass

from planner.parameters import count_parameters
from planner.runs import Layout, TrainingRun
from planner.shapes import ModelShape

# Megatron pads the vocabulary so that each shard is a multiple of this (--make-vocab-size-divisible-by).
VOCABULARY_MULTIPLE = 128


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage and what is at work in it at its busiest moment."""

    index: int
    dense_layers: int
    expert_layers: int
    has_embedding: bool
    has_head: bool
    # How often the activations of the stage's layers lie there at once: a fraction where chunks are interleaved.
    micro_batches_in_flight: float

    @property
    def layers(self) -> int:
        return self.dense_layers + self.expert_layers


def stages(run: TrainingRun) -> list[Stage]:
    layout, shape = run.layout, run.shape
    owners = _layer_owners(run)
    first_expert = shape.experts.dense_layers if shape.experts else shape.layers
    last = layout.pipeline - 1
    return [
        Stage(
            index=index,
            dense_layers=sum(owner == index for owner in owners[:first_expert]),
            expert_layers=sum(owner == index for owner in owners[first_expert:]),
            has_embedding=index == 0,
            has_head=index == last,
            micro_batches_in_flight=_in_flight(layout, index, run.gradient_accumulation),
        )
        for index in range(layout.pipeline)
    ]


def _layer_owners(run: TrainingRun) -> list[int]:
    """The stage of each layer: virtual stages are dealt round-robin, as Megatron does."""
    layout, layers = run.layout, run.shape.layers
    first = run.engine_options.get("decoder_first_pipeline_num_layers")
    final = run.engine_options.get("decoder_last_pipeline_num_layers")
    if first and final and layout.pipeline > 2:
        first, final = int(str(first)), int(str(final))
        inner = layout.pipeline - 2
        middle = [1 + index * inner // (layers - first - final) for index in range(layers - first - final)]
        return [0] * first + middle + [layout.pipeline - 1] * final
    parts = layout.pipeline * layout.virtual_pipeline
    before = 1 if run.engine_options.get("account_for_embedding_in_pipeline_split") else 0
    slots = layers + before + (1 if run.engine_options.get("account_for_loss_in_pipeline_split") else 0)
    return [((index + before) * parts // slots) % layout.pipeline for index in range(layers)]


def _in_flight(layout: Layout, index: int, micro_batches: int) -> float:
    """1F1B holds one micro-batch for each stage behind, itself included; interleaved, chunks of a stage (arXiv 2104.04473 §2.2)."""
    behind = layout.pipeline - index - 1
    if layout.virtual_pipeline == 1:
        return min(behind + 1, micro_batches)
    chunks = 2 * behind + (layout.virtual_pipeline - 1) * layout.pipeline + 1
    return min(chunks, layout.virtual_pipeline * micro_batches) / layout.virtual_pipeline


@dataclass(frozen=True, slots=True)
class Local:
    """Parameters on one GPU before any ZeRO sharding. `linear`: those in matrices that quantization and LoRA know (no embedding, no norms)."""

    embedding: float
    head: float
    linear: float
    norms: float
    routed: float

    @property
    def dense(self) -> float:
        return self.embedding + self.head + self.linear + self.norms

    @property
    def total(self) -> float:
        return self.dense + self.routed


def padded_vocabulary(shape: ModelShape, layout: Layout) -> int:
    multiple = VOCABULARY_MULTIPLE * layout.tensor
    return -(-shape.vocab // multiple) * multiple


def local_parameters(run: TrainingRun, stage: Stage) -> Local:
    shape, layout = run.shape, run.layout
    counts = count_parameters(shape)
    vocab = padded_vocabulary(shape, layout) if run.engine in {"megatron", "nemo"} else shape.vocab
    table = vocab * shape.hidden / layout.tensor
    expert_tensor = layout.expert_tensor or layout.tensor
    layers = stage.dense_layers * counts.mlp + stage.expert_layers * counts.shared + stage.layers * counts.attention
    prediction = counts.prediction if stage.has_head else 0
    return Local(
        embedding=(table if stage.has_embedding else 0) + (counts.positions if stage.has_embedding else 0),
        head=table if _has_own_head(run, stage) else 0,
        linear=(layers + (0 if shape.experts else prediction)) / layout.tensor
        + stage.expert_layers * counts.router
        + (counts.vision if stage.has_embedding else 0),
        norms=stage.layers * counts.norms + (counts.final_norm if stage.has_head else 0),
        routed=(stage.expert_layers * counts.routed + (prediction if shape.experts else 0))
        / (layout.expert * expert_tensor),
    )


def _has_own_head(run: TrainingRun, stage: Stage) -> bool:
    """Tied embeddings share one table, but with a pipeline the last stage has a copy; litgpt stores both ends always."""
    if not stage.has_head:
        return False
    return not run.shape.tied_embeddings or not stage.has_embedding or run.engine == "litgpt"
