"""What serving engines do to a token's time: what the host or the gaps between kernels cost a layer, and what the weights' kernels reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.memory.elements import WEIGHT_BYTES
from planner.runs import ServingRun, WeightFormat
from planner.speed.terms import Constant


@dataclass(frozen=True, slots=True)
class ServingKernels:
    """`layer`: seconds for one layer and step beside the bytes it reads; `host`: that time is the host's, and runs beside the GPU (no CUDA
    graphs); `step`: seconds of scheduler and sampler; `experts`: seconds more for a layer with experts; `all_reduce`: of one small all-reduce.

    `cache`: share of the bandwidth that attention over the cache reaches. `cache_copied`: the cache is copied to grow and repeated for each
    query head; `cache_repeated`: it is read anew for each query head of a group.
    """

    version: str
    layer: float
    host: bool
    step: float
    all_reduce: float
    spread: float
    source: str
    experts: float = 0.0
    cache: float = 0.75
    cache_copied: bool = False
    cache_repeated: bool = False


# Generation of the flash kernels that serving engines bring.
SERVING_FLASH = 3
_QWEN = "Qwen speed benchmarks, one request"
_TABLES = "NVIDIA's tables for it, static batches"
ENGINES: Mapping[str, tuple[ServingKernels, ...]] = {
    # The first whose version begins the run's is taken; the last has none and is for every other.
    "vllm": (ServingKernels("", 0.115e-3, False, 0.3e-3, 12e-6, 0.15, f"vLLM 0.6 with CUDA graphs: {_QWEN} on A100"),),
    "sglang": (
        ServingKernels(
            "", 0.055e-3, False, 0.2e-3, 12e-6, 0.15, f"SGLang 0.4 with CUDA graphs: {_QWEN} on H20", 0.02e-3
        ),
    ),
    "tensorrt-llm": (
        ServingKernels("0.5", 0.05e-3, False, 0.3e-3, 10e-6, 0.2, f"TensorRT-LLM 0.5: {_TABLES}", cache_repeated=True),
        ServingKernels(
            "0.6",
            0.05e-3,
            False,
            0.3e-3,
            10e-6,
            0.2,
            f"TensorRT-LLM 0.6, before its XQA kernels: {_TABLES}",
            cache_repeated=True,
        ),
        ServingKernels("", 0.05e-3, False, 0.3e-3, 10e-6, 0.2, "TensorRT-LLM 1.0: NVIDIA's tables for it, full load"),
    ),
    "transformers": (
        ServingKernels(
            "4.46",
            0.88e-3,
            True,
            0.0,
            30e-6,
            0.15,
            f"transformers 4.46, eager: {_QWEN} on A100",
            0.0,
            0.42,
            cache_copied=True,
        ),
        ServingKernels(
            "4.51",
            0.60e-3,
            True,
            0.0,
            30e-6,
            0.25,
            f"transformers 4.51, eager: {_QWEN} on H20",
            0.0,
            0.20,
            cache_copied=True,
        ),
        ServingKernels(
            "",
            0.77e-3,
            True,
            0.0,
            30e-6,
            0.3,
            "transformers, eager: first Qwen and ChatGLM2 READMEs on A100",
            0.0,
            0.42,
            cache_copied=True,
        ),
    ),
    "litgpt": (ServingKernels("", 0.8e-3, True, 0.0, 30e-6, 0.35, "litgpt, eager: its resource tables on A100"),),
}
# Of the times that a cache is read anew, those that the second-level cache does not answer.
REPEATED_READS = Constant(
    0.75,
    0.2,
    "reads of the cache for each query head that reach memory",
    "TensorRT-LLM 0.6: its table's rows with grouped heads",
)


def serving_kernels(run: ServingRun) -> ServingKernels:
    known = ENGINES[run.engine]
    return next(kernels for kernels in known if run.engine_version.startswith(kernels.version))


@dataclass(frozen=True, slots=True)
class WeightKernel:
    """`bytes_per_weight` with its scales; `share`: of the bandwidth, against 16-bit weights' kernels; `layer`: seconds more for a layer, and
    `experts` for one with experts; `blocking`: they are not hidden behind the GPU.
    """

    bytes_per_weight: float
    share: float = 1.0
    layer: float = 0.0
    experts: float = 0.0
    blocking: bool = False


# What is not here reads its weights as fast as 16-bit kernels do (Marlin on Ampere: Qwen2.5 speed benchmark).
WEIGHT_KERNELS: Mapping[tuple[str, WeightFormat], WeightKernel] = {
    ("transformers", "gptq-int4"): WeightKernel(WEIGHT_BYTES["gptq-int4"], 0.25),
    ("transformers", "gptq-int8"): WeightKernel(WEIGHT_BYTES["gptq-int8"], 0.5, 0.28e-3),
    ("transformers", "awq-int4"): WeightKernel(WEIGHT_BYTES["awq-int4"], 0.3, 0.2e-3),
    ("transformers", "fp8"): WeightKernel(WEIGHT_BYTES["fp8"], 0.5, 0.85e-3, blocking=True),
    ("sglang", "fp8"): WeightKernel(WEIGHT_BYTES["fp8"], 1.25),
    ("sglang", "gptq-int8"): WeightKernel(WEIGHT_BYTES["gptq-int8"], 0.8, 0.02e-3),
    ("sglang", "gptq-int4"): WeightKernel(WEIGHT_BYTES["gptq-int4"], 0.7, 0.0, 0.55e-3),
    ("sglang", "awq-int4"): WeightKernel(WEIGHT_BYTES["awq-int4"], 0.7),
    ("litgpt", "nf4"): WeightKernel(WEIGHT_BYTES["nf4"], 0.4, 0.4e-3),
    ("litgpt", "nf4-dq"): WeightKernel(WEIGHT_BYTES["nf4-dq"], 0.4, 0.6e-3),
    ("litgpt", "fp4"): WeightKernel(WEIGHT_BYTES["fp4"], 0.4, 0.4e-3),
    ("litgpt", "fp4-dq"): WeightKernel(WEIGHT_BYTES["fp4-dq"], 0.4, 0.6e-3),
    ("litgpt", "int8"): WeightKernel(WEIGHT_BYTES["int8"], 0.4, 1.7e-3),
}


def weight_kernel(run: ServingRun) -> WeightKernel:
    plain = WeightKernel(WEIGHT_BYTES[run.weight_format])
    return WEIGHT_KERNELS.get((run.engine, run.weight_format), plain)


# Share of the memory bandwidth that a multiplication with a few tokens reaches while it reads its weights.
WEIGHT_STREAM = Constant(
    0.84,
    0.1,
    "share of the bandwidth that reading weights for a few tokens reaches",
    "vLLM 0.6 on A100: Qwen2.5 speed benchmark",
)
# Cards whose few multiprocessors do not keep so much memory busy.
WEIGHT_STREAM_OF = {
    "h20-96": Constant(
        0.37, 0.15, WEIGHT_STREAM.meaning, "SGLang on H20: Qwen3 speed benchmark; 78 multiprocessors against 4 TB/s"
    ),
    "h20-141": Constant(0.31, 0.25, WEIGHT_STREAM.meaning, "as h20-96, with the bandwidth of the larger card"),
}
