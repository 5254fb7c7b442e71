"""What serving engines do to a token's time: what the host or the gaps between kernels cost a layer, and what the weights' kernels reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.memory.elements import WEIGHT_BYTES
from planner.runs import ServingEngine, ServingRun, WeightFormat
from planner.speed.terms import Constant


@dataclass(frozen=True, slots=True)
class ServingKernels:
    """`layer`: seconds for one layer and step beside the bytes it reads; `host`: that time is the host's, and runs beside the GPU (no CUDA
    graphs); `step`, `request`: seconds of scheduler and sampler, at all and for each request; `experts`: seconds more for a layer with experts; `all_reduce`: of one small all-reduce.

    `cache`: share of the bandwidth that attention over the cache reaches. `cache_copied`: the cache is copied to grow and repeated for each
    query head; `cache_repeated`: it is read anew for each query head of a group.
    """

    source: str
    spread: float
    layer: float
    step: float = 0.3e-3
    request: float = 0.0
    all_reduce: float = 12e-6
    host: bool = False
    experts: float = 0.0
    cache: float = 0.75
    cache_copied: bool = False
    cache_repeated: bool = False


_QWEN = "Qwen speed benchmarks, one request"
_TABLES = "NVIDIA's tables for it, static batches"
_EAGER = ServingKernels(
    "transformers, eager: first Qwen and ChatGLM2 READMEs on A100",
    spread=0.3,
    layer=0.77e-3,
    step=0.0,
    all_reduce=30e-6,
    host=True,
    cache=0.42,
    cache_copied=True,
)
_VLLM = ServingKernels(
    f"vLLM 0.6 with CUDA graphs: {_QWEN} on A100; a request's part of the host: round figure",
    0.15,
    0.115e-3,
    request=0.03e-3,
)
# By engine and the beginning of its version; "" is for every other.
ENGINES: dict[ServingEngine, dict[str, ServingKernels]] = {
    "vllm": {
        "": _VLLM,
        # Before its host's part was cut (release 0.6.0, "2.7 times the throughput"): five rows of 0.5.4, not scored, need 0.16 ms.
        "0.5": replace(_VLLM, source="vLLM 0.5.4: benchmark_throughput on a 40 GB card", spread=0.3, request=0.16e-3),
    },
    "sglang": {
        "": ServingKernels(
            f"SGLang 0.4 with CUDA graphs: {_QWEN} on H20", 0.15, 0.055e-3, step=0.2e-3, experts=0.02e-3
        ),
    },
    "tensorrt-llm": {
        "": ServingKernels("TensorRT-LLM 1.0: NVIDIA's tables for it, full load", 0.2, 0.05e-3, all_reduce=10e-6),
        "0.5": ServingKernels(f"TensorRT-LLM 0.5: {_TABLES}", 0.2, 0.05e-3, all_reduce=10e-6, cache_repeated=True),
        "0.6": ServingKernels(
            f"TensorRT-LLM 0.6, before its XQA kernels: {_TABLES}", 0.2, 0.05e-3, all_reduce=10e-6, cache_repeated=True
        ),
    },
    "transformers": {
        "": _EAGER,
        "4.46": replace(_EAGER, source=f"transformers 4.46, eager: {_QWEN} on A100", spread=0.15, layer=0.88e-3),
        "4.51": replace(
            _EAGER, source=f"transformers 4.51, eager: {_QWEN} on H20", spread=0.25, layer=0.60e-3, cache=0.20
        ),
    },
    "litgpt": {
        "": ServingKernels(
            "litgpt, eager: its resource tables on A100", 0.5, 0.8e-3, step=0.0, all_reduce=30e-6, host=True
        ),
    },
}
# Generation of the flash kernels that serving engines bring.
SERVING_FLASH = 3
# Of the times that a cache is read anew, those that the second-level cache does not answer.
REPEATED_READS = Constant(
    0.75,
    0.2,
    "reads of the cache for each query head that reach memory",
    "TensorRT-LLM 0.6: its table's rows with grouped heads",
)
# What vLLM and SGLang need a layer when told to do without CUDA graphs: the host of an engine with fused kernels.
WITHOUT_GRAPHS = Constant(
    0.4e-3, 0.5, "seconds of the host for a layer", "half of transformers' eager time: fewer, fused kernels"
)


def serving_kernels(run: ServingRun) -> ServingKernels:
    of_engine = ENGINES[run.engine]
    version = max((known for known in of_engine if run.engine_version.startswith(known)), key=len)
    kernels = of_engine[version]
    if run.cuda_graphs or kernels.host:
        return kernels
    return replace(
        kernels, layer=WITHOUT_GRAPHS.value, spread=WITHOUT_GRAPHS.spread, host=True, source=WITHOUT_GRAPHS.source
    )


@dataclass(frozen=True, slots=True)
class WeightKernel:
    """`share`: of the bandwidth, against 16-bit weights' kernels; `layer`: seconds more for a layer, and `experts` for one with experts;
    `blocking`: they are not hidden behind the GPU.
    """

    share: float = 1.0
    layer: float = 0.0
    experts: float = 0.0
    blocking: bool = False


# By engine (with the beginning of a version where that makes a difference), "" for every other, and format. Fitted to the rows that the engine's own times rest on (see ENGINES); bitsandbytes's to litgpt's.
# What is not here reads its weights as fast as 16-bit kernels do: Marlin on Ampere (Qwen2.5 speed benchmark), TensorRT-LLM's FP8.
WEIGHT_KERNELS: dict[tuple[str, WeightFormat], WeightKernel] = {
    ("transformers", "gptq-int4"): WeightKernel(0.25),
    ("transformers", "gptq-int8"): WeightKernel(0.5, layer=0.28e-3),
    ("transformers 4.3", "gptq-int8"): WeightKernel(0.5),
    ("transformers 4.5", "gptq-int8"): WeightKernel(0.5, layer=0.6e-3),
    ("transformers", "awq-int4"): WeightKernel(0.3, layer=0.2e-3),
    ("transformers", "fp8"): WeightKernel(0.5, layer=0.85e-3, blocking=True),
    ("sglang", "fp8"): WeightKernel(1.25),
    ("sglang", "gptq-int8"): WeightKernel(0.8, layer=0.02e-3),
    ("sglang", "gptq-int4"): WeightKernel(0.7, experts=0.55e-3),
    ("sglang", "awq-int4"): WeightKernel(0.7),
    # SmoothQuant and NVFP4: the arithmetic is in that type too.
    ("tensorrt-llm", "int8"): WeightKernel(),
    ("tensorrt-llm", "fp4"): WeightKernel(),
    ("", "nf4"): WeightKernel(0.4, layer=0.4e-3),
    ("", "nf4-dq"): WeightKernel(0.4, layer=0.6e-3),
    ("", "int8"): WeightKernel(0.4, layer=1.7e-3),
}
# The same kernel with another table of values.
_SAME_KERNEL: dict[WeightFormat, WeightFormat] = {"fp4": "nf4", "fp4-dq": "nf4-dq"}


def weight_kernel(run: ServingRun) -> WeightKernel:
    minor = f"{run.engine} {run.engine_version[:3]}"
    any_engine = ("", _SAME_KERNEL.get(run.weight_format, run.weight_format))
    keys = ((minor, run.weight_format), (run.engine, run.weight_format), any_engine)
    return next((WEIGHT_KERNELS[key] for key in keys if key in WEIGHT_KERNELS), WeightKernel())


def bytes_per_weight(run: ServingRun) -> float:
    """With its scales."""
    return WEIGHT_BYTES[run.weight_format]


# Share of the bandwidth that a multiplication with a few tokens reaches while it reads its weights; cards apart whose few multiprocessors
# do not keep so much memory busy.
WEIGHT_STREAM = {
    "": Constant(
        0.84, 0.1, "share of the bandwidth that reading weights reaches", "vLLM 0.6 on A100: Qwen2.5 benchmark"
    ),
    "h20-96": Constant(0.37, 0.15, "the same", "SGLang on H20: Qwen3 benchmark; 78 multiprocessors against 4 TB/s"),
    "h20-141": Constant(0.31, 0.25, "the same", "as h20-96, with the bandwidth of the larger card"),
}


def weight_stream(gpu_id: str) -> Constant:
    return WEIGHT_STREAM.get(gpu_id, WEIGHT_STREAM[""])
