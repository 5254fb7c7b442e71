"""What a GPU can do of what is asked: types and kernels that it lacks are replaced where that changes nothing, else the GPU is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from planner.catalogue.gpus import Gpu
from planner.reasons import Reason, reason
from planner.runs import DType
from planner.speed.cards import NoRateError, printed_rate
from planner.wishes import ServingWish, TrainingWish

WishKind = TypeVar("WishKind", TrainingWish, ServingWish)

# NVIDIA's compute capabilities from which tensor cores know the type, and for which the kernels are written: arch.csv, frameworks.csv.
BF16_FROM = FLASH_FROM = TENSORRT_LLM_FROM = (8, 0)
FP8_FROM = (8, 9)
VLLM_FROM = (7, 5)
CUDA_ONLY_FORMATS = frozenset({"nf4", "nf4-dq", "fp4", "fp4-dq"})


def adapt(wish: WishKind, gpu: Gpu) -> WishKind | Reason:
    """The wish as this GPU can do it, or why it cannot."""
    capability = gpu.compute_capability
    if gpu.memory_bandwidth is None or gpu.rate("fp16") is None or not _computes(gpu, wish.compute_dtype):
        return reason("unsuitable.no_rate", gpu=gpu.name)
    if capability is None:
        return _without_cuda(wish, gpu)
    if (refusal := _refusal(wish, gpu, capability)) is not None:
        return refusal
    if capability < BF16_FROM and wish.compute_dtype == "bf16":
        wish = _in_fp16(wish)
    if isinstance(wish, TrainingWish) and capability < FLASH_FROM and wish.attention == "flash":
        wish = replace(wish, attention="sdpa")
    return wish


def _without_cuda(wish: WishKind, gpu: Gpu) -> WishKind | Reason:
    if wish.weight_format in CUDA_ONLY_FORMATS:
        return reason("unsuitable.cuda_only", gpu=gpu.name)
    unpacked = wish.weight_format == "fp8" and gpu.fp8 is None
    return reason("unsuitable.no_rate", gpu=gpu.name) if unpacked else wish


def _computes(gpu: Gpu, dtype: DType) -> bool:
    """FP8 is judged by the compute capability, which says more than a missing rate."""
    if dtype == "fp8" and gpu.compute_capability is not None and gpu.fp8 is None:
        return True
    try:
        printed_rate(gpu, dtype)
    except NoRateError:
        return False
    return True


def _refusal(wish: TrainingWish | ServingWish, gpu: Gpu, capability: tuple[int, int]) -> Reason | None:
    eight_bit = "fp8" in {wish.compute_dtype, wish.weight_format}
    if capability < FP8_FROM and eight_bit:
        return reason("unsuitable.fp8", gpu=gpu.name)
    if isinstance(wish, ServingWish):
        least = {"vllm": VLLM_FROM, "sglang": VLLM_FROM, "tensorrt-llm": TENSORRT_LLM_FROM}.get(wish.engine, (0, 0))
        if capability < least:
            needed = f"{least[0]}.{least[1]}"
            return reason("unsuitable.engine", gpu=gpu.name, engine=wish.engine, needed=needed)
    return None


def _in_fp16(wish: WishKind) -> WishKind:
    weights = "fp16" if wish.weight_format == "bf16" else wish.weight_format
    return replace(wish, compute_dtype="fp16", weight_format=weights)
