"""Time to first token, time for each further one, and throughput at a concurrency."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network, usual_network
from planner.runs import ServingRun
from planner.speed.decode import decode_terms
from planner.speed.prefill import prefill_terms
from planner.speed.terms import TimeEstimate


@dataclass(frozen=True, slots=True)
class ServingSpeed:
    """`first_token`: reading one prompt on an idle server. `prompts`: reading those of one batch. `token`: one step of one batch.

    `batches` of `batch` requests are under way side by side: replicas of the model, and one in each pipeline stage.
    """

    first_token: TimeEstimate
    prompts: TimeEstimate
    token: TimeEstimate
    batch: float
    batches: int
    prompt_tokens: int
    output_tokens: int

    def answered(self, prompts: float, token: float) -> float:
        """Requests a second, given the seconds of a batch: each batch passes the stages one after another while others fill them."""
        return self.batch * self.batches / (prompts + self.output_tokens * token)

    @property
    def requests_per_second(self) -> float:
        """Batch after batch; with continuous batching the mean of a server that always has as many requests."""
        return self.answered(self.prompts.expected, self.token.expected)

    @property
    def output_tokens_per_second(self) -> float:
        return self.requests_per_second * self.output_tokens

    @property
    def tokens_per_second(self) -> float:
        """Prompt and output."""
        return self.requests_per_second * (self.prompt_tokens + self.output_tokens)

    @property
    def output_tokens_per_second_range(self) -> tuple[float, float]:
        low = self.answered(self.prompts.high, self.token.high)
        return low * self.output_tokens, self.answered(self.prompts.low, self.token.low) * self.output_tokens


def serving_speed(run: ServingRun, gpu: Gpu, network: Network | None = None) -> ServingSpeed:
    """`network`: None takes what machines with this card usually have. Raises NoRateError."""
    network = network or usual_network(gpu)
    layout = run.layout
    batches = min(layout.data * layout.pipeline, max(1, run.concurrency))
    batch = run.concurrency / batches
    context = run.prompt_tokens + run.output_tokens // 2
    return ServingSpeed(
        first_token=TimeEstimate(tuple(prefill_terms(run, gpu, network, 1))),
        prompts=TimeEstimate(tuple(prefill_terms(run, gpu, network, batch))),
        token=TimeEstimate(tuple(decode_terms(run, gpu, network, batch, context))),
        batch=batch,
        batches=batches,
        prompt_tokens=run.prompt_tokens,
        output_tokens=run.output_tokens,
    )
