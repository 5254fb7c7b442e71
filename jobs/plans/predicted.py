"""What the planner says of a chosen option, as a job keeps it (Job.predicted). Pure: JSON-ready values, None or absent = it does not say.

Sizes in bytes of one GPU, times in seconds, rates of all GPUs of the run together, money as text in `currency`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.compatibility.solver import Solution
from planner.estimates import MemoryEstimate
from planner.host import Need
from planner.launchers.base import Launcher
from planner.launchers.environment import oldest_driver
from planner.runs import Layout
from planner.speed.terms import TimeEstimate

Values = dict[str, Any]
# Terms of a step in which GPUs only talk to each other.
EXCHANGES = frozenset(
    {"tensor_parallel", "context_parallel", "expert_parallel", "pipeline_sends", "shards", "gradients"}
)
HOUR = 3600


def predicted_of(
    option: TrainingOption | ServingOption, *, launcher: Launcher, gpus_per_machine: int, solution: Solution | None
) -> Values:
    """`solution`: the software that the launcher's install script brings."""
    own, gpu, layout = figures_of(option), option.gpu, option.run.layout
    return {
        "launcher": launcher.key,
        "engine": option.run.engine,
        "gpu_name": gpu.name,
        "gpus": layout.gpus,
        "gpus_per_machine": gpus_per_machine,
        "machines": layout.gpus // gpus_per_machine,
        "software": software_of(solution, launcher) if solution else None,
        **own,
        "settings": {**_settings(layout), **own["settings"], "rated_watts": gpu.board_watts},
    }


def figures_of(option: TrainingOption | ServingOption) -> Values:
    """What can be said of it whatever it is launched by."""
    own = _of_training(option) if isinstance(option, TrainingOption) else _of_serving(option)
    return {"model": option.run.shape.name, "gpu": option.gpu.id, **own}


def _of_training(option: TrainingOption) -> Values:
    run, speed, whole = option.run, option.speed, option.whole
    low, expected, high = whole.cost(option.price.per_hour) if option.price else (None, None, None)
    return {
        "work": "training",
        "method": run.method,
        **_memory(option.memory),
        "seconds_per_step": speed.step.expected,
        "seconds_per_step_low": speed.step.low,
        "seconds_per_step_high": speed.step.high,
        "tokens_per_second": speed.tokens_per_second,
        "communication_share": communication_share(speed.step),
        "steps": whole.steps,
        "hours": whole.time.expected / HOUR,
        "hours_low": whole.time.low / HOUR,
        "hours_high": whole.time.high / HOUR,
        "cost": _text(expected),
        "cost_low": _text(low),
        "cost_high": _text(high),
        **_price(option),
        "settings": {
            "batch_size": run.micro_batch,
            "gradient_accumulation": run.gradient_accumulation,
            "global_batch": run.sequences_per_step,
            "sequence_length": run.sequence_length,
            **({"lora_rank": run.lora.rank} if run.lora else {}),
        },
    }


def _of_serving(option: ServingOption) -> Values:
    """Of one replica, which is what one job serves."""
    run, speed = option.run, option.speed
    return {
        "work": "serving",
        "method": run.weight_format,
        **_memory(option.memory.estimate),
        "tokens_per_second": speed.output_tokens_per_second,
        "first_token_seconds": speed.first_token.expected,
        "seconds_per_token": speed.token.expected,
        "requests_at_a_time": option.memory.requests,
        "cache_tokens": option.memory.tokens,
        "replicas": option.replicas,
        **_price(option, share=option.replicas),
        "settings": {
            "gpu_memory_utilization": run.memory_utilization,
            "max_num_seqs": run.max_sequences or run.concurrency,
            "max_model_len": run.max_model_len or run.prompt_tokens + run.output_tokens,
            "concurrency": run.concurrency,
            "prompt_tokens": run.prompt_tokens,
            "output_tokens": run.output_tokens,
        },
    }


def _memory(estimate: MemoryEstimate) -> Values:
    terms: defaultdict[str, float] = defaultdict(float)
    for term in estimate.terms:
        terms[term.key] += term.expected
    return {
        "memory_bytes": estimate.expected(),
        "memory_low_bytes": estimate.low(),
        "memory_high_bytes": estimate.high(),
        "terms": {key: amount for key, amount in terms.items() if amount},
    }


def communication_share(step: TimeEstimate) -> float:
    return sum(term.expected for term in step.terms if term.key in EXCHANGES) / step.expected


def _price(option: TrainingOption | ServingOption, *, share: int = 1) -> Values:
    """`share`: of how many equal parts a job is one."""
    if option.price is None:
        return {"cost_per_hour": None, "currency": None}
    return {"cost_per_hour": _text(option.price.per_hour / share), "currency": option.price.currency}


def _settings(layout: Layout) -> Values:
    names = ("data", "tensor", "pipeline", "context", "expert", "zero_stage")
    return {"gpus": layout.gpus, **{name: getattr(layout, name) for name in names}}


def software_of(solution: Solution, launcher: Launcher) -> Values:
    """`packages`: beside torch and the frameworks, by their names on the package index."""
    oldest = oldest_driver(solution)
    return {
        "torch": solution.stack.torch,
        "cuda_tag": solution.stack.cuda_tag,
        "frameworks": dict(solution.stack.frameworks),
        "packages": list(launcher.packages),
        "oldest_driver": str(oldest) if oldest else None,
    }


def host_of(needs: Iterable[Need]) -> Values:
    """What a machine should have beside its GPUs, in the unit of each: {"memory": [minimum, recommended], …}."""
    return {need.key: [need.minimum, need.recommended] for need in needs if need.unit != "word"}


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.4f}"
