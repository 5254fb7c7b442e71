"""Group commit: batches wait a moment for each other, are written in one transaction, and are answered after its commit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from fleet.telemetry import partitions
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.ingest.errors import BusyError, InvalidBodyError, RefusalError, UnavailableError
from fleet.telemetry.ingest.group import Connection, Group, Prepared
from fleet.telemetry.store import current_store

logger = logging.getLogger(__name__)

# Batches that come within this time of each other share a commit, unless there are enough for one already.
WINDOW_SECONDS = 0.05
GROUP_MAX_ROWS = 2_500
# While the database works on one group, the next one is made ready and sent on another connection.
GROUPS_AT_ONCE = 2
QUEUE_MAX_ROWS = 100_000
QUEUE_MAX_BATCHES = 4_096


class Writer:
    """`offer` a batch and await its `done`. `committed` is called with every group after its commit."""

    def __init__(
        self,
        pool: AsyncConnectionPool[Any],
        *,
        committed: Callable[[Sequence[Prepared]], None],
        window: float = WINDOW_SECONDS,
    ) -> None:
        self._pool = pool
        self._committed = committed
        self._window = window
        self._samples = current_store().sample_writer()
        self._queue: deque[Prepared] = deque()
        self._queued_rows = 0
        self._arrived = asyncio.Event()

    @property
    def queued_rows(self) -> int:
        return self._queued_rows

    def offer(self, batch: Prepared) -> None:
        """Raises BusyError, with nothing of the batch kept, while too much is waiting."""
        size = len(batch.rows)
        if self._queue and (self._queued_rows + size > QUEUE_MAX_ROWS or len(self._queue) >= QUEUE_MAX_BATCHES):
            raise BusyError("Too many batches wait to be stored. Nothing of this one was kept; send it again later.")
        self._queue.append(batch)
        self._queued_rows += size
        self._arrived.set()

    async def run(self) -> None:
        """Write groups for ever; on cancellation, what was accepted is still written."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(GROUPS_AT_ONCE):
                    workers.create_task(self._work())
        finally:
            await self._samples.close()

    async def _work(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                if self._queued_rows < GROUP_MAX_ROWS:
                    await asyncio.sleep(self._window)
                await self.flush()
        except asyncio.CancelledError:
            while self._queue:
                await self.flush()
            raise

    async def flush(self) -> None:
        """Write one group of what waits, or nothing when another worker has taken it."""
        batches = self._take()
        if not batches:
            return
        try:
            await self._commit(batches)
        except RefusalError as refusal:
            _refuse(batches, refusal)
        except Exception as error:
            # The flusher must outlive every error: its batches are refused as a whole and the agents send them again.
            logger.exception("A group of %d batches could not be written", len(batches))
            _refuse(batches, UnavailableError(f"The batch could not be stored ({type(error).__name__}). Try again."))

    def _take(self) -> list[Prepared]:
        batches: list[Prepared] = []
        rows = 0
        while self._queue and (not batches or rows + len(self._queue[0].rows) <= GROUP_MAX_ROWS):
            batch = self._queue.popleft()
            rows += len(batch.rows)
            batches.append(batch)
        self._queued_rows -= rows
        if not self._queue:
            self._arrived.clear()
        return batches

    async def _commit(self, batches: list[Prepared]) -> None:
        try:
            await self._write(batches)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            await self._commit_one_by_one(batches, error)

    async def _commit_one_by_one(self, batches: list[Prepared], error: psycopg.Error) -> None:
        """One bad batch, or a missing day, must not take the others along."""
        await self._repair(error)
        for batch in batches:
            try:
                await self._write([batch])
            except psycopg.errors.ForeignKeyViolation:
                # A GPU of it was deleted while we remembered it; the batch itself is good and fits the next time.
                batch.agent.forget_gpus()
                _refuse([batch], UnavailableError("The GPUs of this machine have just changed. Send the batch again."))
            except (psycopg.DataError, psycopg.IntegrityError) as reason:
                logger.warning("A batch of machine %d was refused: %s", batch.agent.instance_id, type(reason).__name__)
                _refuse([batch], InvalidBodyError(f"The database refuses this batch ({type(reason).__name__})."))

    async def _repair(self, error: psycopg.Error) -> None:
        """A sample for which there is no partition yet: make the days, whoever else does so at the same moment."""
        if not isinstance(error, psycopg.errors.CheckViolation):
            return
        async with reaching_database(), self._pool.connection() as connection:
            await ensure_partitions(connection, now=datetime.now(UTC))

    async def _write(self, batches: list[Prepared]) -> None:
        group, now = Group(batches), time.time()
        samples = group.samples(now)
        group.note_refused(await self._samples.send(samples))
        async with reaching_database(), self._pool.connection() as connection:
            await group.write(connection, self._samples, samples, now=now)
        group.settle(now)
        _accept(batches)
        self._committed(batches)


async def ensure_partitions(connection: Connection, *, now: datetime) -> None:
    async with connection.transaction():
        await connection.execute(partitions.TAKE_LOCK, [partitions.LOCK_KEY])
        cursor = await connection.execute(partitions.EXISTING, [list(partitions.TABLES)])
        existing = [name for (name,) in await cursor.fetchall()]
        for statement in partitions.missing_statements(existing, now):
            await connection.execute(statement)


def _accept(batches: Iterable[Prepared]) -> None:
    for batch in batches:
        # Done already: its client hung up and the request was cancelled. The batch is stored all the same.
        if not batch.done.done():
            batch.done.set_result(None)


def _refuse(batches: Iterable[Prepared], refusal: RefusalError) -> None:
    for batch in batches:
        if not batch.done.done():
            batch.done.set_exception(refusal)
