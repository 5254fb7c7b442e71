"""What GPUs send each other in a step, and how much of it shows."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.links import Link, Network
from planner.memory.elements import weight_bytes
from planner.runs import TrainingRun
from planner.speed.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    send_seconds,
    slowest_link,
)
from planner.speed.engines import Behaviour, behaviour
from planner.speed.flops import layer_kinds
from planner.speed.sharding import (
    expert_tensor,
    gradient_bytes,
    routed_parameters,
    stage_parameters,
    trained_parameters,
)
from planner.speed.stage import Stage, passes
from planner.speed.terms import TimeTerm, time_term
from planner.speed.traffic import ELEMENT

_SPREAD = 0.3


def exposed_term(key: str, seconds: float, cover: float, shows: float, *, formula: str, source: str) -> TimeTerm:
    """`cover`: seconds of work that it can hide behind; the part `shows` is seen even so, and what does not fit behind it is seen whole."""
    seen = max(shows * seconds, seconds - cover)
    return time_term(key, seen, _SPREAD, formula=formula, source=source, hidden=seconds - seen)


def microbatch_communication(run: TrainingRun, network: Network, stage: Stage, busy: float) -> Iterator[TimeTerm]:
    """Of one micro-batch: tensor, expert and context parallelism, the next pipeline stage, and the gathers of ZeRO-3.

    `busy`: seconds of work to hide behind; each takes its part of it, so that no second hides two.
    """
    layout, engine = run.layout, behaviour(run)
    if layout.tensor > 1:
        yield (term := _tensor(run, network, stage, busy, engine))
        busy -= term.hidden
    if layout.expert > 1 and run.shape.experts:
        yield (term := _expert(run, network, stage, busy, engine))
        busy -= term.hidden
    if layout.context > 1:
        yield (term := _context(run, network, stage, busy))
        busy -= term.hidden
    if layout.pipeline > 1:
        yield (term := _pipeline(run, network, stage, busy))
        busy -= term.hidden
    if layout.zero_stage == 3 and layout.data > 1:
        yield _shards(run, network, busy, engine)


def _tensor(run: TrainingRun, network: Network, stage: Stage, busy: float, engine: Behaviour) -> TimeTerm:
    link = slowest_link(network, run.layout.tensor)
    size = stage.tokens * run.shape.hidden * ELEMENT
    one = all_reduce_seconds(size, run.layout.tensor, link)
    seconds = one * 2 * passes(run).launches * stage.layers
    return exposed_term(
        "tensor_parallel",
        seconds,
        busy,
        # Overlap writes into the peer's memory, which cards on PCI Express or a network do not let each other do.
        engine.exposed_tensor if link.medium == "nvlink" else 1.0,
        formula="layers x 2 all-reduces of tokens x h x 2 B x passes; the part that shows",
        source=link.source,
    )


def _context(run: TrainingRun, network: Network, stage: Stage, busy: float) -> TimeTerm:
    link = slowest_link(network, run.layout.context, stride=run.layout.tensor)
    keys = 2 * run.shape.kv_heads * run.shape.head_dim * ELEMENT / run.layout.tensor
    size = stage.tokens * keys * run.layout.context
    seconds = all_gather_seconds(size, run.layout.context, link) * (passes(run).launches + 1) * stage.layers
    return exposed_term(
        "context_parallel",
        seconds,
        busy,
        0.1,
        formula="layers x ring of keys and values, tokens x 2 x kv heads x d x 2 B x (forward + again + 2 backward), behind attention",
        source=link.source,
    )


def _expert(run: TrainingRun, network: Network, stage: Stage, busy: float, engine: Behaviour) -> TimeTerm:
    experts = run.shape.experts
    active = experts.active if experts else 0
    # With sequence parallelism each rank sends its own part of the tokens; ranks that share an expert gather theirs.
    split = run.layout.tensor if run.layout.sequence_parallel else 1
    size = stage.tokens / split * expert_tensor(run) * active * run.shape.hidden * ELEMENT
    one = all_to_all_seconds(size, run.layout.expert, network, stride=expert_tensor(run))
    layers = stage.layers * layer_kinds(run.shape)[1] / run.shape.layers
    return exposed_term(
        "expert_parallel",
        one * 2 * passes(run).launches * layers,
        busy,
        engine.exposed_expert,
        formula="expert layers x 2 all-to-alls of tokens x active experts x h x 2 B x passes; the part that shows",
        source=network.between.source if run.layout.expert > network.domain else network.inside.source,
    )


def _pipeline(run: TrainingRun, network: Network, stage: Stage, busy: float) -> TimeTerm:
    layout = run.layout
    link = slowest_link(network, layout.pipeline, stride=layout.tensor * layout.context * layout.data)
    size = stage.tokens * run.shape.hidden * ELEMENT / (layout.tensor if layout.sequence_parallel else 1)
    return exposed_term(
        "pipeline_sends",
        2 * layout.virtual_pipeline * send_seconds(size, link),
        0.0 if layout.virtual_pipeline == 1 else busy,
        0.1,
        formula="2 x virtual stages x tokens x h x 2 B to the next stage; interleaved stages hide most of it",
        source=link.source,
    )


def _shards(run: TrainingRun, network: Network, busy: float, engine: Behaviour) -> TimeTerm:
    """Weights are gathered forward and backward, trained gradients scattered once, for each micro-batch."""
    link = slowest_link(network, run.layout.data, stride=run.layout.tensor * run.layout.context)
    frozen = run.method != "full"
    gathered = stage_parameters(run) * weight_bytes(run.weight_format, run.engine)
    scattered = 0.0 if frozen else stage_parameters(run) * gradient_bytes(run)
    groups = run.shape.layers / run.layout.pipeline
    ring = (run.layout.data - 1) * link.latency * (groups - 1)
    seconds = 2 * (all_gather_seconds(gathered, run.layout.data, link) + ring)
    seconds += all_gather_seconds(scattered, run.layout.data, link) + ring if scattered else 0.0
    return exposed_term(
        "shards",
        seconds,
        busy,
        engine.exposed_data,
        formula="2 gathers of the weights and 1 scatter of the gradients, layer by layer, behind the layers",
        source=link.source,
    )


def step_communication(run: TrainingRun, network: Network, cover: float) -> Iterator[TimeTerm]:
    """Once a step below ZeRO-3. Experts are alike on fewer GPUs than the rest: on every expert-th of them."""
    layout = run.layout
    group = layout.data * layout.context
    if group == 1 or layout.zero_stage == 3:
        return
    routed = routed_parameters(run) if not run.lora else 0.0
    seconds, link = _gradients(run, network, trained_parameters(run) - routed, group)
    if routed and group > layout.expert:
        seconds += _gradients(run, network, routed, group // layout.expert)[0]
    yield exposed_term(
        "gradients",
        seconds,
        cover,
        behaviour(run).exposed_data,
        formula="scatter of the trained gradients and gather (of gradients, or of weights under ZeRO-1 and 2), behind the backward pass",
        source=link.source,
    )


def _gradients(run: TrainingRun, network: Network, trained: float, group: int) -> tuple[float, Link]:
    ranks = run.layout.data * run.layout.context
    link = slowest_link(network, ranks, stride=run.layout.tensor)
    spread = ELEMENT if run.layout.zero_stage else gradient_bytes(run)
    return all_gather_seconds(trained * (gradient_bytes(run) + spread), group, link), link
