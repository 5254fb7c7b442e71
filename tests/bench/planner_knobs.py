"""The free constants of the planner's speed: where each lies, and what one would take it for without the measured rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from planner.speed import cards, decode, engines, kernels, microbatch

Side = Literal["training", "serving"]


@dataclass(frozen=True, slots=True)
class Knob:
    """One field of one entry of a table. `prior`: from a paper, a neighbour, or a round guess, never from the rows."""

    side: Side
    table: Any
    key: Any
    field: str
    prior: float

    @property
    def name(self) -> str:
        key = "/".join(filter(None, self.key)) if isinstance(self.key, tuple) else self.key
        return f"{key}.{self.field}"

    def read(self) -> float:
        return float(getattr(self.table[self.key], self.field))

    def write(self, value: float) -> None:
        self.table[self.key] = replace(self.table[self.key], **{self.field: value})


def knobs() -> list[Knob]:
    return [*_training(), *_serving()]


def _training() -> Iterator[Knob]:
    for table, priors in (
        (cards.MATRIX, {"Ampere": 0.8, "Ada": 0.85, "Hopper": 0.7, "Blackwell": 0.7}),
        (cards.MATRIX8, {"Hopper": 0.6, "Blackwell": 0.6}),
        (cards.ATTENTION_FIRST, {"Ampere": 0.35, "Hopper": 0.25}),
        (cards.ATTENTION, {"Ampere": 0.6}),
        (cards.ATTENTION_NEW, {"Hopper": 0.6, "Blackwell": 0.5}),
        (microbatch.DEQUANTIZE, {"gptq-int4": 12.0}),
        (vars(cards), {"MEMORY": 0.8}),
    ):
        for key, prior in priors.items():
            yield Knob("training", table, key, "value", prior)
    for kernel_set, field, prior in (
        ("eager", "norms", 4.0),
        ("eager", "loss", 24.0),
        ("eager", "host_layer", 0.8e-3),
        ("eager", "host_adapter", 0.1e-3),
        ("partly", "loss", 24.0),
        ("partly", "casts", 1.0),
    ):
        yield Knob("training", engines.KERNELS, kernel_set, field, prior)
    for engine, field, prior in (
        ("fsdp", "exposed_data", 0.2),
        ("fsdp", "step", 0.02),
        ("deepspeed", "host_shard", 1e-3),
        ("deepspeed", "exposed_data", 0.5),
        ("megatron", "exposed_tensor", 0.5),
        ("nemo", "exposed_expert", 1.0),
    ):
        yield Knob("training", engines.BEHAVIOUR, engine, field, prior)


def _serving() -> Iterator[Knob]:
    for engine, version, field, prior in (
        ("vllm", "", "layer", 0.1e-3),
        ("vllm", "", "step", 0.5e-3),
        ("vllm", "", "cache", 0.8),
        ("sglang", "", "layer", 0.1e-3),
        ("sglang", "", "experts", 0.02e-3),
        ("sglang", "", "cache", 0.8),
        ("tensorrt-llm", "", "layer", 0.1e-3),
        ("tensorrt-llm", "", "cache", 0.8),
        ("tensorrt-llm", "0.6", "cache", 0.8),
        ("transformers", "", "layer", 0.8e-3),
        ("transformers", "4.46", "layer", 0.8e-3),
        ("transformers", "4.46", "cache", 0.5),
        ("transformers", "4.51", "layer", 0.8e-3),
        ("transformers", "4.51", "cache", 0.5),
        ("litgpt", "", "layer", 0.8e-3),
    ):
        yield Knob("serving", kernels.ENGINES[engine], version, field, prior)  # type: ignore[index]
    for (engine, weights), kernel in kernels.WEIGHT_KERNELS.items():
        for field, prior in (("share", 0.5), ("layer", 0.2e-3), ("experts", 0.2e-3)):
            if getattr(kernel, field) not in {0.0, 1.0}:
                yield Knob("serving", kernels.WEIGHT_KERNELS, (engine, weights), field, prior)
    yield Knob("serving", kernels.WEIGHT_STREAM, "", "value", 0.8)
    yield Knob("serving", kernels.WEIGHT_STREAM, "h20-96", "value", 0.8)
    yield Knob("serving", vars(decode), "REPEATED_READS", "value", 1.0)
