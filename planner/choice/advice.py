"""The advice of experience, in its order: one GPU, then a bigger batch, then data parallelism, then ZeRO, then tensor, then pipeline.

Each step says whether this run needs it and why, and what it changes in a script that trains on one GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from planner.reasons import Reason, reason
from planner.runs import Layout, ServingEngine
from planner.wishes import ServingWish, TrainingWish

StepKey = Literal["single", "batch", "data", "zero", "tensor", "pipeline"]
Verdict = Literal["enough", "needed", "not_needed", "impossible"]
STEPS: tuple[StepKey, ...] = get_args(StepKey)

# What changes in the script, in the order in which one meets it. Trainer and Accelerate do all of "data" from the launcher alone.
CHANGES: Mapping[StepKey, tuple[Reason, ...]] = {
    "single": (reason("change.none"),),
    "batch": (reason("change.micro_batch"), reason("change.accumulation")),
    "data": (
        reason("change.launcher_only"),
        reason("change.process_group"),
        reason("change.device"),
        reason("change.sampler"),
        reason("change.wrapper_ddp"),
        reason("change.rank_zero"),
    ),
    "zero": (reason("change.wrapper_fsdp"), reason("change.optimizer_after_wrap"), reason("change.sharded_checkpoint")),
    "tensor": (reason("change.parallel_layers"), reason("change.same_data_in_group"), reason("change.megatron")),
    "pipeline": (reason("change.stages"), reason("change.schedule"), reason("change.loss_on_last_stage")),
}


@dataclass(frozen=True, slots=True)
class Step:
    key: StepKey
    verdict: Verdict
    why: Reason
    changes: tuple[Reason, ...]


def step_of(layout: Layout, *, micro_batch: int) -> StepKey:
    """How far up the ladder a layout stands."""
    if layout.pipeline > 1:
        return "pipeline"
    if layout.tensor > 1 or layout.context > 1:
        return "tensor"
    if layout.zero_stage and layout.data > 1:
        return "zero"
    if layout.data > 1:
        return "data"
    return "batch" if micro_batch > 1 else "single"


def ladder(*, chosen: StepKey, feasible: Iterable[StepKey], smaller_would_do: StepKey | None) -> tuple[Step, ...]:
    """What each step would bring.

    `feasible`: steps at which some layout fits on the chosen GPU. `smaller_would_do`: the lowest of them, where the choice stands higher
    only to be done sooner.
    """
    possible = set(feasible)
    place = STEPS.index(chosen)
    return tuple(
        Step(key, *_judge(key, STEPS.index(key), place, possible, smaller_would_do), changes=CHANGES[key])
        for key in STEPS
    )


def _judge(
    key: StepKey, number: int, place: int, possible: set[StepKey], smaller: StepKey | None
) -> tuple[Verdict, Reason]:
    if number > place:
        return "not_needed", reason(f"advice.{key}.not_needed")
    if number == place:
        return "enough", reason(f"advice.{key}.sooner" if smaller not in {None, key} else f"advice.{key}.enough")
    if key in possible:
        return "needed", reason(f"advice.{key}.too_slow")
    return "impossible", reason(f"advice.{key}.does_not_fit")


@dataclass(frozen=True, slots=True)
class EngineAdvice:
    engine: ServingEngine
    reasons: tuple[Reason, ...]


# Fewer requests at a time than this and nobody gains from batching them continuously.
ENGINE_FROM_CONCURRENCY = 2
# Below this many seconds a token, compiled kernels are worth their hours.
TIGHT_SECONDS_PER_TOKEN = 0.02
FOUR_BIT = frozenset({"nf4", "nf4-dq", "fp4", "fp4-dq", "gptq-int4", "awq-int4"})


def engine_advice(wish: ServingWish) -> EngineAdvice:
    """Iterate and go live with vLLM; TensorRT-LLM for the lowest latency, at the price of compiling for one GPU and one shape."""
    reasons = [reason("engine.vllm")]
    engine: ServingEngine = "vllm"
    if wish.seconds_per_token is not None and wish.seconds_per_token < TIGHT_SECONDS_PER_TOKEN:
        engine = "tensorrt-llm"
        reasons = [reason("engine.tensorrt_llm"), reason("engine.vllm_first")]
    elif wish.concurrency < ENGINE_FROM_CONCURRENCY and wish.first_token_seconds is None:
        reasons.append(reason("engine.transformers_for_tests"))
    if wish.weight_format in FOUR_BIT:
        reasons.append(reason("engine.int4_needs_evaluation"))
    reasons.extend(_beyond_positions(wish, wish.max_model_len or wish.prompt_tokens + wish.output_tokens))
    return EngineAdvice(engine, tuple(reasons))


def method_advice(wish: TrainingWish) -> tuple[Reason, ...]:
    """What is worth saying about the method itself."""
    found = []
    if wish.method == "full" and wish.samples < 20_000:
        found.append(reason("method.full_with_little_data", samples=wish.samples))
    if wish.method == "qlora":
        found.append(reason("method.qlora_costs_speed"))
    found.extend(_beyond_positions(wish, wish.sequence_length))
    return tuple(found)


def _beyond_positions(wish: TrainingWish | ServingWish, asked: int) -> Iterator[Reason]:
    if asked > wish.shape.max_positions > 0:
        yield reason("method.beyond_positions", asked=asked, most=wish.shape.max_positions)
