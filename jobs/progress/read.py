"""How far a run is, read from what it prints: one line in, what it says out. Pure.

A line may come from anybody and be of any length; what is beyond LONGEST is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from jobs.progress.bars import read_bar
from jobs.progress.deepspeed import read_deepspeed
from jobs.progress.megatron import read_megatron
from jobs.progress.pairs import LONGEST, read_dict, read_pairs
from jobs.progress.point import Point

# What a float holds exactly, and a column for whole numbers.
MOST = 2**53
_COUNTS = ("step", "steps", "memory_bytes", "skipped_steps")
# Colours and movements of the cursor.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The most particular first.
_READERS: tuple[Callable[[str], Point | None], ...] = (read_megatron, read_deepspeed, read_bar, read_dict, read_pairs)


def read_line(line: str) -> Point | None:
    """None where the line says nothing of progress. Of a line that was written over (a bar), the last state counts."""
    shown = _ANSI.sub("", line[:LONGEST]).rstrip("\r\n").rsplit("\r", 1)[-1]
    return next((point for read in _READERS if (point := _fitting(read(shown)))), None)


def _fitting(point: Point | None) -> Point | None:
    """Without counts that nobody counted to: anybody may print anything."""
    if point is None:
        return None
    unfit = {name: None for name in _COUNTS if not 0 <= (getattr(point, name) or 0) < MOST}
    return replace(point, **unfit) if unfit else point
