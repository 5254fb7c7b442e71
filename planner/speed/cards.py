"""The share of their printed rates that cards reach, by kind of work and architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalogue.gpus import Gpu
from planner.runs import DType
from planner.speed.terms import Constant

_FALLBACK = "other"


def _table(meaning: str, rows: Mapping[str, tuple[float, float, str]]) -> Mapping[str, Constant]:
    return {key: Constant(value, spread, meaning, source) for key, (value, spread, source) in rows.items()}


MATRIX = _table(
    "share of the dense 16-bit rate that large matrix multiplications reach",
    {
        "Volta": (0.75, 0.15, "cuBLAS on V100: 90 to 95 of 125 TFLOP/s"),
        "Turing": (0.55, 0.25, "cuBLAS on T4 at its 70 W: 30 to 40 of 65 TFLOP/s"),
        "Ampere": (0.78, 0.08, "cuBLAS on A100: 230 to 270 of 312 TFLOP/s; llm-foundry A100 rows"),
        "Ada": (0.90, 0.10, "cuBLAS on RTX 4090: 145 to 165 of 165 TFLOP/s with FP32 accumulation"),
        "Hopper": (0.64, 0.10, "cuBLAS on H100 SXM at 700 W: 600 to 750 of 989 TFLOP/s; llm-foundry H100 rows"),
        "Blackwell": (
            0.70,
            0.15,
            "cuBLAS on B200 at 1 kW: 1,400 to 1,700 of 2,250 TFLOP/s; Megatron-Bridge 25.11 rows",
        ),
        _FALLBACK: (0.55, 0.30, "no measurement at hand: what ROCm 6 reaches on MI300X, 600 to 750 of 1,307 TFLOP/s"),
    },
)
MATRIX8 = _table(
    "share of the dense 8-bit rate that large matrix multiplications reach, scaling included",
    {
        "Ada": (0.70, 0.15, "as Hopper"),
        "Hopper": (0.66, 0.12, "Transformer Engine on H100: 1,200 to 1,400 of 1,979 TFLOP/s; Megatron-LM Llama-3 rows"),
        "Blackwell": (0.42, 0.40, "Megatron-Bridge 25.11 rows with MXFP8"),
        _FALLBACK: (0.45, 0.35, "no measurement at hand"),
    },
)
MATRIX4 = _table(
    "share of the dense 4-bit rate that large matrix multiplications reach",
    {
        "Blackwell": (0.50, 0.30, "no row: cuBLAS with NVFP4 on B200, 4,500 to 6,500 of 9,000 TFLOP/s"),
        _FALLBACK: (0.40, 0.35, "no measurement at hand"),
    },
)
ATTENTION = _table(
    "share of the dense 16-bit rate that a flash kernel reaches forward, causal work counted",
    {
        "Volta": (0.30, 0.30, "no flash kernel before compute capability 7.5: the memory-efficient one"),
        "Turing": (0.30, 0.30, "as Volta"),
        "Ampere": (0.60, 0.12, "FlashAttention-2 (Dao 2023): 190 to 220 of 312 TFLOP/s causal"),
        "Ada": (0.60, 0.20, "as Ampere"),
        "Hopper": (0.40, 0.20, "FlashAttention-2 on H100: 350 to 450 of 989 TFLOP/s; 3 reaches 600"),
        "Blackwell": (0.40, 0.25, "cuDNN 9 on B200: 1,000 to 1,300 of 2,250 TFLOP/s"),
        _FALLBACK: (0.30, 0.35, "no measurement at hand"),
    },
)
# FlashAttention-1 and its Triton port, as 2023's llm-foundry ran it.
ATTENTION_FIRST = _table(
    "as ATTENTION, first generation",
    {
        "Ampere": (
            0.365,
            0.12,
            "FlashAttention (Dao et al. 2022): 100 to 120 of 312 TFLOP/s; llm-foundry A100 rows from 16k tokens",
        ),
        "Hopper": (0.205, 0.15, "llm-foundry H100 rows from 16k tokens"),
    },
)
# The newest kernels of Transformer Engine (cuDNN 9) and FlashAttention-3, where the architecture has them.
ATTENTION_NEW = _table(
    "as ATTENTION, third generation",
    {
        "Hopper": (0.53, 0.15, "FlashAttention-3 (Shah et al. 2024), cuDNN 9: 500 to 650 of 989 TFLOP/s causal"),
        "Blackwell": (0.45, 0.25, "cuDNN 9 on B200: 1,000 to 1,300 of 2,250 TFLOP/s"),
    },
)
_FLASH = {1: ATTENTION_FIRST, 2: ATTENTION, 3: ATTENTION_NEW}
MEMORY = Constant(
    0.83, 0.10, "share of the memory bandwidth that streaming kernels reach", "STREAM-like kernels on A100 and H100"
)


class NoRateError(ValueError):
    """The catalogue does not say how fast a card is in a type, or that it lacks it."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a card reaches. FLOP/s and bytes/s; spreads as parts of them."""

    matrix: float
    matrix_spread: float
    # Of what stays 16-bit in an 8-bit run: head, router, attention.
    matrix16: float
    attention: float
    attention_spread: float
    memory: float
    # As printed: kernels that reach another share of it start from here.
    bandwidth: float
    memory_spread: float
    sources: Mapping[str, str]


def printed_rate(gpu: Gpu, dtype: DType) -> float:
    """Dense FLOP/s; bf16 is fp16 on cards without it, fp32 TF32 on cards with it. Raises NoRateError."""
    rates = {
        "fp4": gpu.fp4,
        "fp8": gpu.fp8,
        "fp16": gpu.fp16,
        "bf16": gpu.bf16 or gpu.fp16,
        "fp32": gpu.tf32 or gpu.fp32,
    }
    if rate := rates[dtype]:
        return rate
    raise NoRateError(f"{gpu.name}: the catalogue has no {dtype} rate")


def card(gpu: Gpu, dtype: DType, *, flash: int = 2) -> Card:
    """`flash`: generation of the attention kernels. Raises NoRateError."""
    rate, rate16 = printed_rate(gpu, dtype), printed_rate(gpu, "fp16" if dtype == "fp16" else "bf16")
    if not gpu.memory_bandwidth:
        raise NoRateError(f"{gpu.name}: the catalogue has no memory bandwidth")
    matrix16 = _of(MATRIX, gpu)
    attention = _FLASH.get(flash, ATTENTION).get(gpu.arch, _of(ATTENTION, gpu))
    matrix = _of({"fp8": MATRIX8, "fp4": MATRIX4}.get(dtype, MATRIX), gpu)
    return Card(
        matrix=rate * matrix.value,
        matrix_spread=matrix.spread,
        matrix16=rate16 * matrix16.value,
        attention=rate16 * attention.value,
        attention_spread=attention.spread,
        memory=gpu.memory_bandwidth * MEMORY.value,
        bandwidth=gpu.memory_bandwidth,
        memory_spread=MEMORY.spread,
        sources={"matrix": matrix.source, "attention": attention.source, "memory": MEMORY.source},
    )


def _of(table: Mapping[str, Constant], gpu: Gpu) -> Constant:
    return table.get(gpu.arch, table[_FALLBACK])
