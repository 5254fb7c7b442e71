"""The whole run around its steps: reading the data, checkpoints, start; and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from planner.parameters import count_parameters
from planner.runs import TrainingRun
from planner.speed.sharding import trained_parameters
from planner.speed.terms import TimeEstimate, TimeTerm, time_term
from planner.speed.training import TrainingSpeed

GPUS_OF_A_MACHINE = 8
# 32-bit master weights and two moments beside 16-bit weights: what a checkpoint to go on from holds for each trained parameter.
RESUMABLE_BYTES, _WEIGHT_BYTES = 14.0, 2.0
# Of a text that was turned into tokens beforehand: 4-byte integers.
TOKEN_BYTES = 4.0
# Tokens that one CPU core turns text into in a second, where that was not done beforehand: Hugging Face tokenizers, batches.
TOKENS_PER_CORE = 150_000.0
_SECONDS_OF_START = 120.0
_SECONDS_OF_COMPILING = 180.0
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Machine:
    """What surrounds the GPUs of one machine, in bytes/s: its disk or file system, and its way to the internet."""

    read_bandwidth: float
    write_bandwidth: float
    internet_bandwidth: float
    loader_cores: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`tokens` of one epoch. `checkpoint_steps`: between two checkpoints; None keeps only the end. `tokenized`: before the run."""

    tokens: int
    epochs: float = 1.0
    checkpoint_steps: int | None = None
    bytes_per_token: float = TOKEN_BYTES
    tokenized: bool = True
    weights_are_there: bool = False


@dataclass(frozen=True, slots=True)
class WholeRun:
    steps: int
    time: TimeEstimate

    def cost(self, price_per_hour: Decimal) -> tuple[Decimal, Decimal, Decimal]:
        """Low, expected and high, in the currency of the price of all machines together."""
        low, expected, high = (
            price_per_hour * Decimal(seconds) / _HOUR for seconds in (self.time.low, self.time.expected, self.time.high)
        )
        return low, expected, high


def whole_run(run: TrainingRun, speed: TrainingSpeed, plan: Plan, machine: Machine) -> WholeRun:
    """Raises ValueError where there is nothing to train on."""
    if plan.tokens <= 0 or plan.epochs <= 0:
        raise ValueError("tokens and epochs must be above zero")
    steps = math.ceil(plan.tokens * plan.epochs / speed.tokens_per_step)
    return WholeRun(steps, TimeEstimate(tuple(_terms(run, speed, plan, machine, steps))))


def _terms(run: TrainingRun, speed: TrainingSpeed, plan: Plan, machine: Machine, steps: int) -> Iterator[TimeTerm]:
    step = speed.step
    yield TimeTerm(
        "steps",
        steps * step.expected,
        steps * step.low,
        steps * step.high,
        f"{steps} steps x seconds of a step",
        "the terms of a step",
    )
    yield data_stall(speed, plan, machine, steps)
    yield _checkpoints(run, plan, machine, steps)
    yield _start(run, plan, machine)


def machines_of(gpus: int) -> int:
    return math.ceil(gpus / GPUS_OF_A_MACHINE)


def data_stall(speed: TrainingSpeed, plan: Plan, machine: Machine, steps: int) -> TimeTerm:
    """Batches are read while the step before is computed: only what takes longer shows."""
    tokens = speed.tokens_per_step / machines_of(speed.gpus)
    reading = tokens * plan.bytes_per_token / machine.read_bandwidth
    turning = 0.0 if plan.tokenized else tokens / (TOKENS_PER_CORE * machine.loader_cores)
    needed = max(reading, turning)
    return time_term(
        "data",
        steps * max(0.0, needed - speed.step.expected),
        0.3,
        formula="steps x max(0, slower of tokens x bytes / read bandwidth and tokens / (cores x tokens a core turns) - a step)",
        source="loaders prefetch; Hugging Face tokenizers: some 150,000 tokens/s a core in batches",
        hidden=steps * min(needed, speed.step.expected),
    )


def checkpoint_bytes(run: TrainingRun) -> float:
    """Of the whole model: adapters alone where only they are trained, else weights with everything to go on from."""
    parts = run.layout.tensor * run.layout.pipeline
    if run.lora:
        return trained_parameters(run) * parts * RESUMABLE_BYTES
    return count_parameters(run.shape).total * RESUMABLE_BYTES


def _checkpoints(run: TrainingRun, plan: Plan, machine: Machine, steps: int) -> TimeTerm:
    count = 1 + (steps // plan.checkpoint_steps if plan.checkpoint_steps else 0)
    one = checkpoint_bytes(run) / machines_of(run.layout.gpus) / machine.write_bandwidth
    return time_term(
        "checkpoints",
        count * one,
        0.3,
        formula=f"{count} x trained parameters x 14 B / machines / write bandwidth",
        source="16-bit weights, 32-bit master weights and two moments, written by all machines while training waits",
    )


def _start(run: TrainingRun, plan: Plan, machine: Machine) -> TimeTerm:
    size = count_parameters(run.shape).total * _WEIGHT_BYTES
    download = 0.0 if plan.weights_are_there else size / machine.internet_bandwidth
    compiling = _SECONDS_OF_COMPILING if run.compiled else 0.0
    return time_term(
        "start",
        download + size / machine.read_bandwidth + _SECONDS_OF_START + compiling,
        0.5,
        formula="weights / internet bandwidth + weights / read bandwidth + 120 s for imports, process group and first steps (+ 180 s to compile)",
        source="each machine fetches the 16-bit weights once",
    )
