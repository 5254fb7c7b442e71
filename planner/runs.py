"""What is to be run: the input of every estimate. Plain values, no defaults that hide a choice of the page's form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.shapes import ModelShape

Method = Literal["full", "lora", "qlora"]
DType = Literal["fp32", "bf16", "fp16", "fp8", "fp4"]
WeightFormat = Literal[
    "fp32", "bf16", "fp16", "fp8", "int8", "nf4", "nf4-dq", "fp4", "fp4-dq", "gptq-int8", "gptq-int4", "awq-int4"
]
Optimizer = Literal["adamw", "adamw-8bit", "adamw-8bit-paged", "adafactor", "sgd", "sgd-momentum", "muon"]
Checkpointing = Literal["none", "selective", "full"]
Attention = Literal["eager", "sdpa", "flash"]
# "fused": one kernel turns 16-bit logits into their own gradient (FlashAttention, Liger).
Logits = Literal["full", "chunked", "fused"]
ZeroStage = Literal[0, 1, 2, 3]
# What waits in the machine's memory: nothing, the optimizer with its states, or the weights too.
Offload = Literal["none", "optimizer", "all"]
TrainingEngine = Literal["ddp", "fsdp", "deepspeed", "megatron", "transformers", "torchtune", "litgpt", "nemo"]
ServingEngine = Literal["vllm", "tensorrt-llm", "transformers", "sglang", "litgpt"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the GPUs share the work. world = data x tensor x pipeline x context; experts are spread inside data x context."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    # Chunks of a pipeline stage that are interleaved.
    virtual_pipeline: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int | None = None
    zero_stage: ZeroStage = 0
    sequence_parallel: bool = False

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context


@dataclass(frozen=True, slots=True)
class Lora:
    """`targets`: names of the adapted linear layers (q k v o gate up down); `trained_whole`: layers trained beside them (embed, head)."""

    rank: int
    targets: tuple[str, ...]
    trained_whole: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One step is micro_batch x gradient_accumulation x data-parallel sequences of sequence_length tokens."""

    shape: ModelShape
    method: Method
    engine: TrainingEngine
    layout: Layout
    sequence_length: int
    micro_batch: int
    gradient_accumulation: int = 1
    compute_dtype: DType = "bf16"
    weight_format: WeightFormat = "bf16"
    # An fp32 copy of the weights that the optimizer works on.
    master_weights: bool = True
    # None: what the engine does by itself (Megatron fp32, else the type of the weights).
    gradient_dtype: DType | None = None
    optimizer: Optimizer = "adamw"
    lora: Lora | None = None
    checkpointing: Checkpointing = "none"
    # Module names that Megatron recomputes with checkpointing="selective"; empty: its attention core.
    recompute_modules: tuple[str, ...] = ()
    attention: Attention = "flash"
    logits: Logits = "full"
    compiled: bool = False
    # Every sequence is filled to its length.
    packed: bool = True
    optimizer_offload: bool = False
    parameter_offload: bool = False
    activation_offload: bool = False
    optimizer_in_backward: bool = False
    # Details that only one engine knows, by its own names.
    engine_options: dict[str, object] = field(default_factory=dict)
    engine_version: str = ""

    @property
    def sequences_per_step(self) -> int:
        return self.micro_batch * self.gradient_accumulation * self.layout.data


@dataclass(frozen=True, slots=True)
class ServingRun:
    """`concurrency` requests at a time, each of prompt_tokens and output_tokens."""

    shape: ModelShape
    engine: ServingEngine
    layout: Layout
    concurrency: int
    prompt_tokens: int
    output_tokens: int
    weight_format: WeightFormat = "bf16"
    compute_dtype: DType = "bf16"
    kv_dtype: DType | Literal["int8"] = "bf16"
    engine_version: str = ""
    # Share of the card that the engine takes for itself (vLLM, SGLang, TensorRT-LLM).
    memory_utilization: float = 0.9
    max_model_len: int | None = None
    max_sequences: int | None = None
    max_batched_tokens: int | None = None
    cuda_graphs: bool = True
    engine_options: dict[str, object] = field(default_factory=dict)
