"""What a rollup row holds: resolutions, readings and statistics. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS


@dataclass(frozen=True, slots=True)
class Resolution:
    """`name` is what the API and pages call it. Buckets lie on the UTC epoch's grid; raw samples have none (0)."""

    name: str
    seconds: int

    @property
    def width(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    def floor(self, moment: datetime) -> datetime:
        return datetime.fromtimestamp(moment.timestamp() // self.seconds * self.seconds, UTC)


RAW = Resolution("raw", 0)
FIVE_MINUTES = Resolution("5min", 300)
HOUR = Resolution("1h", 3600)
ROLLUPS = (FIVE_MINUTES, HOUR)
RESOLUTIONS = (RAW, *ROLLUPS)

# Bits have no mean: a rollup keeps every bit that was set at any time.
BITS = "throttle_reasons"
STATISTICS = ("min", "avg", "max", "p95")
GPU_ROLLED: Sequence[str] = tuple(name for name in GPU_COLUMNS if name != BITS)
HOST_ROLLED: Sequence[str] = HOST_COLUMNS
PERCENTILE = 0.95
