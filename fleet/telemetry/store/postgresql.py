"""The default engine: samples and rollups in the database that holds everything else, in the same transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import psycopg

from fleet.telemetry.ingest import statements as sql
from fleet.telemetry.rollups.columns import Resolution
from fleet.telemetry.rollups.roll import Rolled, roll_up
from fleet.telemetry.spans import Span
from fleet.telemetry.store.base import Asked, Samples
from fleet.telemetry.store.postgresql_series import figures
from fleet.telemetry.store.postgresql_states import state_seconds


class PostgresWriter:
    async def send(self, samples: Samples) -> Counter[int]:
        return Counter()

    async def insert(self, connection: psycopg.AsyncConnection[Any], samples: Samples) -> None:
        await sql.run(connection, sql.INSERT_GPU_SAMPLES, sql.GPU_SAMPLE, samples.gpus)
        await sql.run(connection, sql.INSERT_HOST_SAMPLES, sql.HOST_SAMPLE, samples.hosts)
        await sql.run(connection, sql.INSERT_LATE_BUCKETS, sql.LATE_BUCKET, samples.late_buckets)

    async def close(self) -> None:
        return


class PostgresStore:
    def sample_writer(self) -> PostgresWriter:
        return PostgresWriter()

    def figures(self, asked: Asked, span: Span) -> Iterable[tuple[Any, ...]]:
        return figures(asked, span)

    def state_seconds(self, gpu_ids: Sequence[int], span: Span, *, interval_seconds: int) -> Iterable[tuple[Any, ...]]:
        return state_seconds(gpu_ids, span, interval_seconds=interval_seconds)

    def reads(self, resolution: Resolution) -> Resolution:
        return resolution

    def roll_up(self, *, now: datetime, budget_seconds: float | None = None) -> Rolled:
        return roll_up(now=now, budget_seconds=budget_seconds)
