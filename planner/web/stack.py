"""The software for a chosen option: the newest stack that its GPU and driver run, with what was found about it."""

from __future__ import annotations

from functools import lru_cache

from planner.catalogue.gpus import gpus
from planner.catalogue.software_tables import software
from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.compatibility.solver import Solution, solve_stack
from planner.compatibility.stacks import Finding, Machine, Needs
from planner.launchers.base import Place
from planner.launchers.environment import likely_driver
from planner.runs import ServingRun, TrainingRun
from planner.web.options import Row
from planner.web.words import sentence
from planner.web.words.terms import LEVELS

# Names of frameworks.csv that each engine needs beside torch; what is not in the table is pure Python and follows torch.
_BESIDE = {
    "megatron": ("megatron-core", "transformer-engine"),
    "deepspeed": ("deepspeed",),
    "vllm": ("vllm",),
    "tensorrt-llm": ("tensorrt-llm",),
}


def software_row(option: TrainingOption | ServingOption, driver: str) -> Row:
    """`driver` "" stands for the one that machines with this GPU are likely to have."""
    run = option.run
    frameworks = frameworks_of(run)
    needs = Needs(
        dtype=run.compute_dtype,
        weight_format=run.weight_format,
        flash_attention=isinstance(run, TrainingRun) and run.attention == "flash",
    )
    found, used = _solution(option.gpu.id, driver, frameworks, needs, option.gpus)
    if found is None:
        return {
            "driver": used or None,
            "level": "refused",
            "level_words": str(LEVELS["refused"]),
            **_nothing(frameworks),
        }
    wheel = found.wheel
    return {
        "driver": used,
        "level": found.level,
        "level_words": str(LEVELS[found.level]),
        "torch": found.stack.torch,
        "cuda_tag": found.stack.cuda_tag,
        "frameworks": [{"name": name, "version": version} for name, version in found.stack.frameworks.items()],
        "findings": [_finding(finding) for finding in found.findings],
        "build": wheel.tag if wheel else None,
    }


def frameworks_of(run: TrainingRun | ServingRun) -> tuple[str, ...]:
    beside = _BESIDE.get(run.engine, ())
    four_bit = run.weight_format in {"nf4", "nf4-dq"}
    eight_bit_states = isinstance(run, TrainingRun) and run.optimizer.startswith("adamw-8bit")
    return (*beside, "bitsandbytes") if four_bit or eight_bit_states else beside


def _nothing(frameworks: tuple[str, ...]) -> Row:
    names = [{"name": name, "version": None} for name in frameworks]
    return {"torch": None, "cuda_tag": None, "frameworks": names, "findings": [], "build": None}


def _finding(finding: Finding) -> Row:
    return {
        "step": finding.step,
        "level": finding.level,
        "level_words": str(LEVELS[finding.level]),
        "text": sentence(finding.reason),
        "fix": sentence(finding.fix) if finding.fix else None,
    }


@lru_cache(maxsize=512)
def _solution(
    gpu_id: str, driver: str, frameworks: tuple[str, ...], needs: Needs, count: int
) -> tuple[Solution | None, str]:
    """And the driver that it is for: where none was named, the one that the install script reckons with, else the newest that will do."""
    gpu = gpus()[gpu_id]
    if gpu.compute_capability is None:
        return None, driver
    likely = likely_driver(Place(gpu))
    drivers = [driver] if driver else [*([likely] if likely else ()), *_newest_drivers()]
    for each in drivers:
        if found := solve_stack(Machine(gpu, each, gpus=min(count, 8)), frameworks, needs):
            return found, each
    return None, driver


def _newest_drivers() -> list[str]:
    return [str(branch.branch) for branch in sorted(software().branches, key=lambda each: -each.branch)]
