"""What PyTorch says as it runs out of memory, in both of the shapes that it has had. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.diagnosis.evidence import Line
from jobs.progress.numbers import size_bytes

_SIZE = r"([\d.]+ ?[KMGT]?i?B|[\d.]+ bytes)"
OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUDA error: out of memory|HIP out of memory|CUDA_ERROR_OUT_OF_MEMORY"
)
_TRIED = re.compile(rf"Tried to allocate {_SIZE}")
_TOTAL = re.compile(rf"total capacity of {_SIZE}|; {_SIZE} total capacity")
_FREE = re.compile(rf"of which {_SIZE} is free|; {_SIZE} free")
_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch|; {_SIZE} already allocated")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED = re.compile(rf"; {_SIZE} reserved in total by PyTorch")
_OTHER = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_GPU = re.compile(r"GPU (\d+)(?:;| has)")


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


def outs_of_memory(lines: tuple[Line, ...]) -> Iterator[OutOfMemory]:
    for line in lines:
        if OUT_OF_MEMORY.search(line.text):
            yield _read(line)


def _read(line: Line) -> OutOfMemory:
    text = line.text
    gpu = _GPU.search(text)
    allocated, reserved = _bytes(_ALLOCATED, text), _bytes(_RESERVED, text)
    unused = _bytes(_UNUSED, text)
    if unused is None and reserved is not None and allocated is not None:
        unused = reserved - allocated
    return OutOfMemory(
        line=line,
        gpu=int(gpu[1]) if gpu else None,
        tried=_bytes(_TRIED, text),
        total=_bytes(_TOTAL, text),
        free=_bytes(_FREE, text),
        allocated=allocated,
        unused=unused,
        others=sum(size_bytes(size) or 0 for size in _OTHER.findall(text)),
    )


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    size = next((group for group in found.groups() if group), "") if found else ""
    return size_bytes(size.replace("bytes", "B")) if size else None
