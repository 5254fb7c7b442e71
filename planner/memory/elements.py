"""Bytes of one element in each type and weight format."""

from __future__ import annotations

from planner.runs import WeightFormat

GIB = 2**30
MIB = 2**20

DTYPE_BYTES: dict[str, float] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}

# Block-wise 4-bit of bitsandbytes: 64 elements share an fp32 scale (QLoRA, arXiv 2305.14314 §3); double quantization keeps the
# scales in 8 bits, with an fp32 constant for 256 of them.
_BLOCK_4BIT = 0.5 + 4 / 64
_BLOCK_4BIT_DOUBLE = 0.5 + 1 / 64 + 4 / (64 * 256)
# Groups of 128 rows with a 16-bit scale and a zero point as wide as the weight; act-order indices are below 0.1 %.
_GROUP = 128
_GPTQ_INT4 = 0.5 + (2 + 0.5) / _GROUP
_GPTQ_INT8 = 1 + (2 + 1) / _GROUP

WEIGHT_BYTES: dict[WeightFormat, float] = {
    "fp32": 4,
    "bf16": 2,
    "fp16": 2,
    # A scale for each output channel or 128 x 128 block: below 0.1 %.
    "fp8": 1,
    "int8": 1,
    "nf4": _BLOCK_4BIT,
    "fp4": _BLOCK_4BIT,
    "nf4-dq": _BLOCK_4BIT_DOUBLE,
    "fp4-dq": _BLOCK_4BIT_DOUBLE,
    "gptq-int4": _GPTQ_INT4,
    "awq-int4": _GPTQ_INT4,
    "gptq-int8": _GPTQ_INT8,
}
BITSANDBYTES = frozenset({"int8", "nf4", "nf4-dq", "fp4", "fp4-dq"})


def is_quantized(weight_format: WeightFormat) -> bool:
    return weight_format not in {"fp32", "bf16", "fp16"}


def weight_bytes(weight_format: WeightFormat, engine: str = "") -> float:
    """Of a frozen base: 16-bit unless quantized. torchtune's NF4 (torchao NF4Tensor) always quantizes its scales too."""
    if not is_quantized(weight_format):
        return 2.0
    return WEIGHT_BYTES["nf4-dq" if engine == "torchtune" and weight_format == "nf4" else weight_format]
