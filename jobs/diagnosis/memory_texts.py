"""What frameworks say as they run out of GPU memory: PyTorch in the shapes that it has had, JAX, TensorFlow, PaddlePaddle, NCCL, TensorRT-LLM, llama.cpp. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.diagnosis.evidence import Line
from jobs.progress.numbers import size_bytes

_SIZE = r"([\d.]+ ?[KMGT]?i?B|[\d.]+ bytes)"
# The failure itself: hints that only name it ("if you see CUDA out of memory, …") are none.
OUT_OF_MEMORY = re.compile(
    r"(?:Error|Exception|error|exception)\b.{0,80}(?:CUDA|HIP)(?: error:)? out of memory|(?:CUDA|HIP) out of memory\.? (?:Tried|occurred)"
    r"|OutOfMemoryError: |CUDA error: out of memory|CUDA driver error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|CUDA runtime error (?:in|\(2\)).*out of memory|Cuda failure (?:2 )?'out of memory'|cudaMalloc failed: out of memory"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating tensor"
    r"|ResourceExhaustedError.*Out of memory error on GPU|due to insufficient GPU memory",
    re.IGNORECASE,
)
_TRIED = re.compile(
    rf"Tried to allocate {_SIZE}|trying to allocate {_SIZE}|Cannot allocate {_SIZE} memory|allocating {_SIZE} on device"
)
_TOTAL = re.compile(rf"total capacity of {_SIZE}|; {_SIZE} total capacity|has total {_SIZE} of which")
_FREE = re.compile(rf"of which {_SIZE} is free|; {_SIZE} free|available memory is only {_SIZE}")
_ALLOCATED = re.compile(
    rf"{_SIZE} is allocated by PyTorch|; {_SIZE} already allocated|{_SIZE} memory has been allocated"
)
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED = re.compile(rf"; {_SIZE} (?:reserved in total by PyTorch|cached)")
_OTHER = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_OWN = re.compile(rf"this process has {_SIZE} memory in use")
_GPU = re.compile(r"\bGPU (\d+)(?:;| has|[.,])|on device (\d+)")
# Of a process on a GPU beside its tensors: context, libraries, communication.
CONTEXT_BYTES = 1536 << 20


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """Bytes; `unused`: reserved by PyTorch and free within; `others`: of other processes on that GPU."""

    line: Line
    gpu: int | None
    tried: int | None
    total: int | None
    free: int | None
    allocated: int | None
    unused: int | None
    others: int

    @property
    def missing(self) -> int | None:
        """What has to be given back at least for this allocation."""
        return None if self.tried is None else max(0, self.tried - (self.free or 0))


def outs_of_memory(lines: tuple[Line, ...]) -> Iterator[OutOfMemory]:
    for line in lines:
        if _may_say_so(line.text) and OUT_OF_MEMORY.search(line.text):
            yield _read(line)


def _may_say_so(text: str) -> bool:
    """Most lines do not: a look for words costs a tenth of the expression."""
    small = text.lower()
    return "memory" in small or "alloc_failed" in small or "oom when" in small


def _read(line: Line) -> OutOfMemory:
    text = line.text
    gpu = _GPU.search(text)
    allocated, reserved = _bytes(_ALLOCATED, text), _bytes(_RESERVED, text)
    unused = _bytes(_UNUSED, text)
    if unused is None and reserved is not None and allocated is not None:
        # The oldest form names only what is cached beside what is allocated.
        unused = reserved if "cached" in text else reserved - allocated
    return OutOfMemory(
        line=line,
        gpu=int(gpu[1] or gpu[2]) if gpu else None,
        tried=_bytes(_TRIED, text),
        total=_bytes(_TOTAL, text),
        free=_bytes(_FREE, text),
        allocated=allocated,
        unused=unused,
        others=_others(text, allocated, unused),
    )


def _others(text: str, allocated: int | None, unused: int | None) -> int:
    """As it says itself; else what is neither free nor this process's own. In a container no other process can be named."""
    total, free, own = _bytes(_TOTAL, text), _bytes(_FREE, text), _bytes(_OWN, text)
    sizes = [size_bytes(size) or 0 for size in _OTHER.findall(text)]
    if own is None and allocated:
        # Where it does not know itself by its number, it lists itself among the others.
        holds = allocated + (unused or 0)
        sizes = [size for size in sizes if not holds <= size <= holds + 2 * CONTEXT_BYTES]
    named = sum(sizes)
    if own is None and allocated is not None:
        own = allocated + (unused or 0) + CONTEXT_BYTES
    if total is None or free is None or own is None or own > total:
        return named
    return max(named, total - free - own)


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    size = next((group for group in found.groups() if group), "") if found else ""
    return size_bytes(size.replace("bytes", "B")) if size else None
