"""The time of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network, usual_network
from planner.runs import TrainingRun
from planner.speed.cards import printed_rate
from planner.speed.communication import microbatch_communication, step_communication
from planner.speed.engines import behaviour
from planner.speed.flops import model_flops_per_token
from planner.speed.microbatch import microbatch_terms
from planner.speed.offload import offload_terms
from planner.speed.optimizer import optimizer_term
from planner.speed.sharding import trained_parameters
from planner.speed.stage import Stage
from planner.speed.terms import TimeEstimate, TimeTerm, time_term

# Of a micro-batch, where gradients come to be: only those of the last one are sent.
BACKWARD_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class TrainingSpeed:
    """`step`: seconds of one optimizer step, term by term. Rates are of all GPUs together unless they say otherwise."""

    step: TimeEstimate
    tokens_per_step: int
    gpus: int
    model_flops_per_token: float
    peak_flops: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens_per_step / self.step.expected

    @property
    def tokens_per_second_per_gpu(self) -> float:
        return self.tokens_per_second / self.gpus

    @property
    def tokens_per_second_range(self) -> tuple[float, float]:
        return self.tokens_per_step / self.step.high, self.tokens_per_step / self.step.low

    @property
    def mfu(self) -> float:
        """Model FLOPs utilization, 0 to 1: attention counted square, over the dense rate of the compute type."""
        return self.tokens_per_second_per_gpu * self.model_flops_per_token / self.peak_flops


def training_speed(run: TrainingRun, gpu: Gpu, network: Network | None = None) -> TrainingSpeed:
    """`network`: None takes what machines with this card usually have. Raises NoRateError."""
    terms = tuple(_step_terms(run, gpu, network or usual_network(gpu)))
    return TrainingSpeed(
        step=TimeEstimate(terms),
        tokens_per_step=run.sequences_per_step * run.sequence_length,
        gpus=run.layout.gpus,
        model_flops_per_token=model_flops_per_token(run.shape, run.sequence_length),
        peak_flops=printed_rate(gpu, run.compute_dtype),
    )


def _step_terms(run: TrainingRun, gpu: Gpu, network: Network) -> Iterator[TimeTerm]:
    fullest = _microbatch(run, gpu, network, Stage.fullest(run))
    for term in fullest:
        yield _times(term, run.gradient_accumulation)
    micro = sum(term.expected for term in fullest)
    idle = 0.0
    if run.layout.pipeline > 1:
        mean = sum(term.expected for term in _microbatch(run, gpu, network, Stage.mean(run)))
        yield (term := bubble(run, mean))
        idle = term.expected
    yield from step_communication(run, network, micro * BACKWARD_SHARE + idle)
    yield optimizer_term(run, gpu, trained_parameters(run))
    yield time_term(
        "step",
        behaviour(run).step,
        0.5,
        formula="once a step: norm of the gradients, logging, the next batch",
        source="llm-foundry rows without accumulation against those with it",
    )


def _microbatch(run: TrainingRun, gpu: Gpu, network: Network, stage: Stage) -> list[TimeTerm]:
    terms = list(microbatch_terms(run, gpu, stage))
    busy = sum(term.expected for term in terms)
    sent = list(microbatch_communication(run, network, stage, busy))
    left = busy - sum(term.hidden for term in sent)
    return [*terms, *sent, *offload_terms(run, gpu, stage, left)]


def _times(term: TimeTerm, count: int) -> TimeTerm:
    return TimeTerm(
        term.key,
        term.expected * count,
        term.low * count,
        term.high * count,
        f"{count} x ({term.formula})",
        term.source,
        term.hidden * count,
    )


def bubble(run: TrainingRun, microbatch_seconds: float) -> TimeTerm:
    """One-forward-one-backward: p - 1 micro-batches fill and drain the pipeline, a v-th of that with v interleaved chunks."""
    return time_term(
        "bubble",
        (run.layout.pipeline - 1) / run.layout.virtual_pipeline * microbatch_seconds,
        0.15,
        formula="(p - 1) / v x time of a micro-batch",
        source="Narayanan et al. 2021, section 2.2 (interleaved 1F1B)",
    )
