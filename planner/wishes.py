"""What somebody wants done, before anything is chosen: the input of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from planner.catalogue.prices import PriceKind
from planner.runs import (
    Attention,
    Checkpointing,
    DType,
    Logits,
    Lora,
    Method,
    Offload,
    Optimizer,
    ServingEngine,
    WeightFormat,
)
from planner.shapes import ModelShape

Priority = Literal["money", "time", "simplicity"]


@dataclass(frozen=True, slots=True)
class Market:
    """Where to look: `gpu_ids` empty means the whole catalogue.

    `link` joins the nodes (one of planner.catalogue.links.NETWORKS); None is what machines with the card usually have.
    """

    gpu_ids: tuple[str, ...] = ()
    most_gpus: int = 64
    price_kinds: tuple[PriceKind, ...] = ("on-demand",)
    currency: str = "USD"
    link: str | None = None
    priority: Priority = "money"
    # Per GPU-hour, by GPU id: what the team pays goes before the bundled table.
    team_prices: tuple[tuple[str, Decimal], ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingWish:
    """`global_batch` sequences a step; the whole run sees `samples` x `epochs` sequences of `sequence_length` tokens at most."""

    shape: ModelShape
    method: Method
    sequence_length: int
    global_batch: int
    samples: int
    epochs: float
    tokens_per_sample: int
    lora: Lora | None = None
    compute_dtype: DType = "bf16"
    weight_format: WeightFormat = "bf16"
    optimizer: Optimizer = "adamw"
    master_weights: bool = True
    attention: Attention = "flash"
    logits: Logits = "full"
    # None: what the machine needs.
    checkpointing: Checkpointing | None = None
    packed: bool = True
    compiled: bool = False
    offload: Offload = "none"
    personal_data: bool = False
    deadline_hours: float | None = None
    budget: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ServingWish:
    """`concurrency` requests at a time; `first_token_seconds` and `seconds_per_token` are what people will put up with, None for any."""

    shape: ModelShape
    concurrency: int
    prompt_tokens: int
    output_tokens: int
    engine: ServingEngine = "vllm"
    weight_format: WeightFormat = "bf16"
    compute_dtype: DType = "bf16"
    kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] = "bf16"
    max_model_len: int | None = None
    memory_utilization: float = 0.9
    first_token_seconds: float | None = None
    seconds_per_token: float | None = None
    personal_data: bool = False


Wish = TrainingWish | ServingWish
