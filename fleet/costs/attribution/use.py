"""Who uses a GPU, by its processes. Pure.

A process on a GPU keeps the GPU from others whether it computes or not: time is given to whoever has processes there. Of several users
each gets what their processes occupy of its memory, which is what they keep from each other; where that is not known, an equal part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

NOBODY = ""
Process = Mapping[str, object]


def users_of(processes: Sequence[Process]) -> dict[str, float]:
    """The part of each user of one GPU, which are 1 together; empty where nothing runs. NOBODY: whose user is not known."""
    if not processes:
        return {}
    parts: dict[str, float] = defaultdict(float)
    for user, weight in _memory(processes) or {(user, 1.0) for user in map(user_of, processes)}:
        parts[user] += weight
    total = sum(parts.values())
    return {user: part / total for user, part in parts.items() if part > 0}


def user_of(process: Process) -> str:
    return str(process.get("user") or NOBODY)


def _memory(processes: Sequence[Process]) -> list[tuple[str, float]] | None:
    """Bytes of each process and its user. None: not told of every process, or nothing in sum."""
    found: list[tuple[str, float]] = []
    for process in processes:
        value = process.get("memory_bytes")
        if not isinstance(value, int | float):
            return None
        found.append((user_of(process), float(value)))
    return found if sum(size for _user, size in found) > 0 else None
