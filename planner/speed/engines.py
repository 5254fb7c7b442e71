"""What training engines do to the time of a step: how fused their kernels are, what the host spends on a layer, what hides behind what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.runs import TrainingRun


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
    fetching the batch). `flash`: generation of its attention kernels. `balanced_stages`: pipeline stages are cut so that the head weighs too.
    """

    kernels: Kernels
    exposed_data: float
    exposed_tensor: float
    exposed_expert: float
    host_shard: float
    step: float
    source: str
    flash: int = 2
    balanced_stages: bool = False


_EAGER = Kernels(
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
)
_PARTLY = Kernels(
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
)
_FUSED = Kernels(
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
)

BEHAVIOUR: Mapping[str, Behaviour] = {
    "ddp": Behaviour(_EAGER, 0.15, 1.0, 1.0, 0.0, 0.02, "PyTorch 2 DDP, buckets of 25 MB behind the backward pass"),
    "fsdp": Behaviour(_PARTLY, 0.14, 1.0, 1.0, 0.1e-3, 0.028, "PyTorch 2 FSDP: llm-foundry rows from 8 to 512 GPUs"),
    "deepspeed": Behaviour(
        _EAGER, 0.3, 1.0, 1.0, 3.0e-3, 0.05, "DeepSpeed 0.10 to 0.12: Qwen full fine-tuning rows with ZeRO-3"
    ),
    "transformers": Behaviour(_EAGER, 0.3, 1.0, 1.0, 0.1e-3, 0.02, "transformers 4.32 Trainer: Qwen fine-tuning rows"),
    "torchtune": Behaviour(_PARTLY, 0.2, 1.0, 1.0, 0.1e-3, 0.02, "torchtune 0.3, FSDP2"),
    "litgpt": Behaviour(_PARTLY, 0.2, 1.0, 1.0, 0.1e-3, 0.02, "litgpt 0.4, FSDP"),
    "megatron": Behaviour(
        _FUSED, 0.1, 0.4, 1.0, 0.05e-3, 0.01, "Megatron-LM core 0.9 to 0.14 with overlaps on: its Llama-3 rows", 3
    ),
    "nemo": Behaviour(_FUSED, 0.1, 0.3, 0.5, 0.05e-3, 0.01, "Megatron-Bridge 25.11: its rows", 3, balanced_stages=True),
}


def behaviour(run: TrainingRun) -> Behaviour:
    """torch.compile fuses what eager engines do not."""
    of_engine = BEHAVIOUR[run.engine]
    return replace(of_engine, kernels=_FUSED) if run.compiled else of_engine
