"""What training engines do to the time of a step: how fused their kernels are, what the host spends on a layer, what hides behind what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.runs import TrainingEngine, TrainingRun

KernelSet = Literal["eager", "partly", "fused"]


@dataclass(frozen=True, slots=True)
class Kernels:
    """How often an operation's elements go through memory against once each: counts that profiles of the engines show, fitted where rows allow.

    `loss` and `loss_chunked`: bytes for each entry of the vocabulary and token, forward and backward. `host_layer`: seconds of the host to
    issue one layer's kernels in one pass; `host_adapter`: the same for each adapted matrix in it.
    """

    norms: float
    activation: float
    rotation: float
    loss: float
    loss_chunked: float
    host_layer: float
    host_adapter: float
    adapters: float
    casts: float
    source: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """`exposed_*`: the part of that parallelism's communication that shows although there is work to hide it behind. `host_shard`: seconds of
    the host more for each layer and pass under ZeRO-3. `step`: seconds of a step beside everything else (norm of the gradients, logging,
    fetching the batch). `flash`: generation of its attention kernels. `splits_streams`: tensor parallelism comes with sequence parallelism.
    """

    kernels: KernelSet
    step: float
    exposed_data: float
    source: str
    exposed_tensor: float = 1.0
    exposed_expert: float = 1.0
    host_shard: float = 0.0
    flash: int = 2
    splits_streams: bool = False


KERNELS: dict[KernelSet, Kernels] = {
    "eager": Kernels(
        norms=4.0,
        activation=1.5,
        rotation=3.0,
        loss=31.0,
        loss_chunked=20.0,
        host_layer=0.9e-3,
        host_adapter=0.11e-3,
        adapters=1.0,
        casts=2.75,
        source="eager PyTorch, norms in 32 bit as transformers 4 writes them; host times: Qwen fine-tuning rows at 256 and 512 tokens",
    ),
    "partly": Kernels(
        norms=1.0,
        activation=1.0,
        rotation=1.5,
        loss=31.0,
        loss_chunked=12.0,
        host_layer=0.5e-3,
        host_adapter=0.1e-3,
        adapters=1.0,
        casts=2.75,
        source="fused 16-bit norms; loss and 8-bit casts: llm-foundry rows of small models and of FP8",
    ),
    "fused": Kernels(
        norms=0.7,
        activation=0.7,
        rotation=1.0,
        loss=20.0,
        loss_chunked=10.0,
        host_layer=0.3e-3,
        host_adapter=0.05e-3,
        adapters=0.5,
        casts=0.5,
        source="Transformer Engine or torch.compile: norms joined with what follows them",
    ),
}

BEHAVIOUR: dict[TrainingEngine, Behaviour] = {
    "ddp": Behaviour(
        "eager", step=0.02, exposed_data=0.15, source="PyTorch 2 DDP, buckets of 25 MB behind the backward pass"
    ),
    "fsdp": Behaviour(
        "partly",
        step=0.028,
        exposed_data=0.14,
        host_shard=0.1e-3,
        source="PyTorch 2 FSDP: llm-foundry rows from 8 to 512 GPUs",
    ),
    "deepspeed": Behaviour(
        "eager",
        step=0.05,
        exposed_data=1.0,
        host_shard=3.0e-3,
        source="DeepSpeed 0.10 to 0.12: Qwen full fine-tuning rows with ZeRO-3",
    ),
    "transformers": Behaviour(
        "eager",
        step=0.02,
        exposed_data=0.3,
        host_shard=0.1e-3,
        source="transformers 4.32 Trainer: Qwen fine-tuning rows",
    ),
    "torchtune": Behaviour("partly", step=0.02, exposed_data=0.2, host_shard=0.1e-3, source="torchtune 0.3, FSDP2"),
    "litgpt": Behaviour("partly", step=0.02, exposed_data=0.2, host_shard=0.1e-3, source="litgpt 0.4, FSDP"),
    "megatron": Behaviour(
        "fused",
        step=0.01,
        exposed_data=0.1,
        exposed_tensor=0.4,
        flash=3,
        splits_streams=True,
        source="Megatron-LM core 0.9 to 0.14 with overlaps on: its Llama-3 rows",
    ),
    "nemo": Behaviour(
        "fused",
        step=0.01,
        exposed_data=0.1,
        exposed_tensor=0.4,
        exposed_expert=0.8,
        flash=3,
        splits_streams=True,
        source="Megatron-Bridge 25.11: its rows",
    ),
}


def behaviour(run: TrainingRun) -> Behaviour:
    return BEHAVIOUR[run.engine]


def kernels_of(run: TrainingRun) -> Kernels:
    """torch.compile fuses what eager engines do not."""
    return KERNELS["fused" if run.compiled else behaviour(run).kernels]
