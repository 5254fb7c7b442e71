"""Options of a plan as rows of plain values, training and serving alike: what one of them does not have is None."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from planner.choice.prices import HourlyPrice
from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.estimates import MemoryEstimate
from planner.runs import Offload, ServingRun, TrainingRun
from planner.speed.terms import TimeEstimate
from planner.speed.whole_run import machines_of

Row = dict[str, Any]
_PLACES = Decimal("0.0001")
_HOUR = 3600


def money(amount: Decimal) -> Decimal:
    return amount.quantize(_PLACES, ROUND_HALF_UP)


def written(value: Any) -> Any:
    """An answer as JSON can hold it: money as text, so that no digit of it is lost in a float."""
    if isinstance(value, dict):
        return {name: written(each) for name, each in value.items()}
    if isinstance(value, list):
        return [written(each) for each in value]
    return str(value) if isinstance(value, Decimal | date) else value


def span(low: float, expected: float, high: float) -> Row:
    return {"low": low, "expected": expected, "high": high}


def memory_span(memory: MemoryEstimate) -> Row:
    return span(memory.low(), memory.expected(), memory.high())


def time_span(time: TimeEstimate, unit_seconds: float = 1.0) -> Row:
    return span(time.low / unit_seconds, time.expected / unit_seconds, time.high / unit_seconds)


def option_rows(options: Iterable[TrainingOption | ServingOption]) -> list[Row]:
    return [option_row(option) for option in options]


def option_row(option: TrainingOption | ServingOption) -> Row:
    own = _training(option) if isinstance(option, TrainingOption) else _serving(option)
    return {
        "gpu": option.gpu.id,
        "gpu_name": option.gpu.name,
        "gpus": option.gpus,
        "machines": machines_of(option.gpus),
        "card_bytes": option.gpu.memory_bytes,
        "fit": option.fit,
        "engine": option.run.engine,
        "layout": layout_row(option.run),
        "price": price_row(option.price) if option.price else None,
        **own,
    }


def layout_row(run: TrainingRun | ServingRun) -> Row:
    layout = run.layout
    return {
        "data": layout.data,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "context": layout.context,
        "expert": layout.expert,
        "zero_stage": layout.zero_stage,
        "sequence_parallel": layout.sequence_parallel,
        "offload": _offload(run),
    }


def _offload(run: TrainingRun | ServingRun) -> Offload:
    if isinstance(run, ServingRun) or not run.optimizer_offload:
        return "none"
    return "all" if run.parameter_offload else "optimizer"


def price_row(price: HourlyPrice) -> Row:
    return {
        "per_hour": money(price.per_hour),
        "per_gpu_hour": money(price.per_gpu_hour),
        "currency": price.currency,
        "kind": price.kind,
        "provider": price.provider or None,
        "sku": price.sku or None,
        "observed_on": price.observed_on,
        "source": price.source or None,
    }


def _training(option: TrainingOption) -> Row:
    run, speed = option.run, option.speed
    return {
        "step": option.step,
        "replicas": None,
        "micro_batch": run.micro_batch,
        "gradient_accumulation": run.gradient_accumulation,
        "checkpointing": run.checkpointing,
        "memory_bytes": memory_span(option.memory),
        "steps": option.whole.steps,
        "step_seconds": time_span(speed.step),
        "hours": time_span(option.whole.time, _HOUR),
        "tokens_per_second": speed.tokens_per_second,
        "mfu": speed.mfu,
        "first_token_seconds": None,
        "token_seconds": None,
        "requests_at_a_time": None,
        "cache_tokens": None,
        "meets_targets": None,
        "cost": _run_cost(option),
        "cost_per_million_tokens": None,
    }


def _run_cost(option: TrainingOption) -> Row | None:
    if option.price is None:
        return None
    low, expected, high = option.whole.cost(option.price.per_hour)
    return {"low": money(low), "expected": money(expected), "high": money(high)}


def _serving(option: ServingOption) -> Row:
    speed, memory = option.speed, option.memory
    per_million = option.cost_per_million_tokens
    return {
        "step": None,
        "replicas": option.replicas,
        "micro_batch": None,
        "gradient_accumulation": None,
        "checkpointing": None,
        "memory_bytes": memory_span(memory.estimate),
        "steps": None,
        "step_seconds": None,
        "hours": None,
        "tokens_per_second": option.output_tokens_per_second,
        "mfu": None,
        "first_token_seconds": time_span(speed.first_token),
        "token_seconds": time_span(speed.token),
        "requests_at_a_time": memory.requests * option.replicas,
        "cache_tokens": memory.tokens * option.replicas,
        "meets_targets": option.meets_targets,
        "cost": None,
        "cost_per_million_tokens": None if per_million is None else money(per_million),
    }
