"""Samples to be kept: a real trace, and a made fleet in which every reading is there and moves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MADE_GPUS, MADE_SECONDS, MADE_INTERVAL = 32, 86_400, 10
# Reading: middle, how far it strays, digits behind the point. What strays by 0 stands still.
MADE: dict[str, tuple[float, float, int]] = {
    "utilization_percent": (90, 4, 0),
    "memory_utilization_percent": (45, 5, 0),
    "sm_activity": (0.8, 0.04, 6),
    "sm_occupancy": (0.4, 0.02, 6),
    "tensor_activity": (0.35, 0.03, 6),
    "dram_activity": (0.4, 0.03, 6),
    "power_watts": (560, 20, 3),
    "power_limit_watts": (700, 0, 0),
    "temperature_celsius": (61, 0.7, 0),
    "memory_temperature_celsius": (70, 0.7, 0),
    "pcie_rx_bytes_per_second": (2e9, 3e8, 3),
    "pcie_tx_bytes_per_second": (1e9, 2e8, 3),
    "nvlink_rx_bytes_per_second": (3e10, 4e9, 3),
    "nvlink_tx_bytes_per_second": (3e10, 4e9, 3),
}
# Reading: middle, how far it strays, and the grid it lies on.
MADE_WHOLE: dict[str, tuple[int, int, int]] = {
    "memory_used_bytes": (60 << 30, 8 << 20, 1 << 21),
    "memory_reserved_bytes": (618_659_840, 0, 1),
    "sm_clock_mhz": (1_700, 40, 15),
    "memory_clock_mhz": (2_619, 0, 1),
    "process_count": (1, 0, 1),
    "process_memory_bytes": (60 << 30, 0, 1),
}


@dataclass(frozen=True, slots=True)
class Readings:
    """One GPU: seconds since the midnight that everything begins at, and a column a reading."""

    at: list[float]
    columns: dict[str, list[Any]]


def traced(path: Path) -> list[Readings]:
    from fleet.traces import read_trace

    return [
        Readings(
            [row.t for row in rows],
            {
                "utilization_percent": [row.utilization_percent for row in rows],
                "memory_used_bytes": [row.memory_used_bytes for row in rows],
            },
        )
        for rows in read_trace(path).pods.values()
    ]


def made() -> list[Readings]:
    chance = random.Random(1)
    return [_made(chance) for _ in range(MADE_GPUS)]


def _made(chance: random.Random) -> Readings:
    count = MADE_SECONDS // MADE_INTERVAL
    # An agent samples on time but for a few milliseconds.
    at = [MADE_INTERVAL * step + chance.randrange(8) / 1000 for step in range(count)]
    columns: dict[str, list[Any]] = {"throttle_reasons": [chance.choice((0, 0, 0, 4)) for _ in at]}
    for name, (middle, spread, digits) in MADE.items():
        values = (middle + spread * step for step in _wander(chance, count))
        columns[name] = [round(_held(name, value), digits) + 0.0 for value in values]
    for name, (mid, stray, grid) in MADE_WHOLE.items():
        columns[name] = [(mid + int(stray * step)) // grid * grid for step in _wander(chance, count)]
    return Readings(at, columns)


def _held(name: str, value: float) -> float:
    """Within what can be: a share is never above the whole."""
    top = 100.0 if name.endswith("percent") else 1.0 if name.endswith(("activity", "occupancy")) else value
    return min(max(value, 0.0), top)


def _wander(chance: random.Random, count: int) -> Iterator[float]:
    value = 0.0
    for _ in range(count):
        value = 0.9 * value + chance.gauss(0, 1)
        yield value
