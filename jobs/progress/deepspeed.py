"""DeepSpeed's own lines, which say the step apart from the speed. Pure."""

from __future__ import annotations

import re

from jobs.progress.numbers import NUMBER, number
from jobs.progress.point import Point

GIB = 1 << 30
_STEP = re.compile(rf"\bstep=(\d+), skipped=(\d+), lr=\[({NUMBER})")
_SPEED = re.compile(
    rf"\bglobal_step=(\d+), RunningAvgSamplesPerSec=({NUMBER}), CurrSamplesPerSec=({NUMBER})(?:, MemAllocated=[\d.]+GB, MaxMemAllocated=({NUMBER})GB)?"
)


def read_deepspeed(line: str) -> Point | None:
    if (found := _STEP.search(line)) is not None:
        return Point(step=int(found[1]), skipped_steps=int(found[2]), learning_rate=number(found[3]))
    if (found := _SPEED.search(line)) is None:
        return None
    # It divides by 1024³ and calls it GB.
    most = number(found[4])
    return Point(
        step=int(found[1]),
        samples_per_second=number(found[3]),
        memory_bytes=None if most is None else round(most * GIB),
    )
