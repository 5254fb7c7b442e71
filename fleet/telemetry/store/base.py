"""What an engine for readings does. Latest values, GPUs, events and late marks stay in PostgreSQL whichever it is.

Both engines pass tests/fleet/telemetry/store/test_contract.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, get_args

import psycopg

from fleet.telemetry.models import GpuReading, HostReading
from fleet.telemetry.rollups.columns import Resolution
from fleet.telemetry.rollups.roll import Rolled
from fleet.telemetry.spans import Span

Statistic = Literal["mean", "min", "max", "p95"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
# Under this key stands what several GPUs came to together.
TOGETHER = 0


@dataclass(frozen=True, slots=True)
class Source:
    """GPUs or machines. `kind` begins the names of tables and of metrics, `key` names the column of their ids."""

    kind: str
    key: str
    known_fields: frozenset[str]


GPUS = Source("gpu", "gpu_id", frozenset(one.name for one in GpuReading._meta.get_fields()))
HOSTS = Source("host", "instance_id", frozenset(one.name for one in HostReading._meta.get_fields()))


@dataclass(frozen=True, slots=True)
class Asked:
    """`together`: all ids as one, under the key TOGETHER."""

    source: Source
    ids: Sequence[int]
    fields: Sequence[str]
    statistic: Statistic
    together: bool = False


@dataclass(frozen=True, slots=True)
class Samples:
    """What a group of batches adds, as rows in the order of ingest's GPU_SAMPLE, HOST_SAMPLE and LATE_BUCKET. `machines`: GPU id -> machine id."""

    gpus: Sequence[tuple[Any, ...]]
    hosts: Sequence[tuple[Any, ...]]
    late_buckets: Sequence[tuple[int, float]] = ()
    machines: Mapping[int, int] = field(default_factory=dict)


class SampleWriter(Protocol):
    """Belongs to one event loop. A batch is acknowledged after both `send` and the commit that `insert` is part of."""

    async def send(self, samples: Samples) -> Counter[int]:
        """Before the transaction, where an engine is reached over the network.

        Returns how many values of each machine it refuses for good. Raises RefusalError with nothing acknowledged while it cannot take them.
        """

    async def insert(self, connection: psycopg.AsyncConnection[Any], samples: Samples) -> None:
        """Within the transaction that writes the latest values."""

    async def close(self) -> None: ...


class Store(Protocol):
    def sample_writer(self) -> SampleWriter: ...

    def figures(self, asked: Asked, span: Span) -> Iterable[tuple[Any, ...]]:
        """(id or TOGETHER, number of the bucket on the epoch's grid, one figure per field or None). Raises StoreError."""

    def state_seconds(self, gpu_ids: Sequence[int], span: Span, *, interval_seconds: int) -> Iterable[tuple[Any, ...]]:
        """(GPU id, number of the bucket, seconds in each state in the order of SECONDS_COLUMNS). Raises StoreError."""

    def reads(self, resolution: Resolution) -> Resolution:
        """What a span of this resolution is really read from."""

    def roll_up(self, *, now: datetime, budget_seconds: float | None = None) -> Rolled:
        """Keep what long spans are read from up to date."""


class StoreError(Exception):
    """The store of readings could not answer: it is away, or refuses the question. The text holds no secret."""
