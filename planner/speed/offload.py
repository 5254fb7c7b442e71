"""What goes over PCI Express and comes back: weights and activations that wait in the host's memory."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import pcie
from planner.runs import TrainingRun
from planner.speed.communication import exposed_term
from planner.speed.sharding import stage_parameters
from planner.speed.stage import Stage, passes
from planner.speed.terms import TimeTerm
from planner.speed.traffic import ELEMENT

# Copies run beside the kernels on a stream of their own, but start late and end late.
_SHOWS = 0.2
# Inputs of a layer's matrices that are kept where nothing is computed again: as wide as the residual, about so many (Korthikanti et al. 2022).
_KEPT_STREAMS = 17


def offload_terms(run: TrainingRun, gpu: Gpu, stage: Stage, busy: float) -> Iterator[TimeTerm]:
    """Of one micro-batch. `busy`: seconds of work that copies can hide behind."""
    link = pcie(gpu)
    if run.parameter_offload:
        shards = run.layout.data if run.layout.zero_stage == 3 else 1
        size = stage_parameters(run) * ELEMENT / shards * passes(run).launches
        yield (
            term := exposed_term(
                "parameter_offload",
                size / link.reached,
                busy,
                _SHOWS,
                formula="weights of this GPU x 2 B x passes / PCI Express",
                source=link.source,
            )
        )
        busy -= term.hidden
    if run.activation_offload:
        streams = 1 if run.checkpointing == "full" else _KEPT_STREAMS
        size = 2 * streams * stage.tokens * run.shape.hidden * ELEMENT * stage.layers / run.layout.tensor
        yield exposed_term(
            "activation_offload",
            size / link.reached,
            busy,
            _SHOWS,
            formula="kept activations, down forward and up backward / PCI Express",
            source=link.source,
        )
