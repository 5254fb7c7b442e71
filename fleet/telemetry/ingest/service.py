"""What lives as long as the web process: connections, the cache of agents, the flusher, the agent's own file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fleet.meters import FLUSH_SECONDS, forget_dead_processes, meters
from fleet.telemetry.ingest.agents import AgentCache
from fleet.telemetry.ingest.bundle import AgentFiles
from fleet.telemetry.ingest.database import make_pool, reaching_database
from fleet.telemetry.ingest.errors import UnavailableError
from fleet.telemetry.ingest.push import Publisher
from fleet.telemetry.ingest.writer import Writer, ensure_partitions

logger = logging.getLogger(__name__)

STOP_SECONDS = 5.0


class Service:
    """Made on the event loop that serves it; `start` returns whether or not the database is up."""

    def __init__(self) -> None:
        self.pool = make_pool()
        self.agents = AgentCache(self.pool)
        self.files = AgentFiles()
        self.publisher = Publisher()
        self.writer = Writer(self.pool, committed=self.publisher.committed)
        self._tasks: list[asyncio.Task[Any]] = []

    async def start(self) -> None:
        await self.pool.open()
        for work in (
            self.writer.run(),
            self.publisher.run(),
            self.agents.run(),
            self._prepare_days(),
            self._build_agent(),
            self._report_meters(),
        ):
            self._run(work)

    async def stop(self) -> None:
        """Write what was accepted, then close. The writer is the last to go."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.publisher.close()
        await self.pool.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_report)
        self._tasks.append(task)

    async def _prepare_days(self) -> None:
        # Beat keeps the days; a web process that starts before it must not wait for that.
        with contextlib.suppress(UnavailableError):
            async with reaching_database(), self.pool.connection() as connection:
                await ensure_partitions(connection, now=datetime.now(UTC))

    async def _report_meters(self) -> None:
        """For as long as the server runs; the worker's children have no loop and report after each task."""
        meters.show("ingest_queued_rows", lambda: self.writer.queued_rows)
        for name, figure in (("connections", "pool_size"), ("idle", "pool_available"), ("waiting", "requests_waiting")):
            meters.show(f"ingest_pool_{name}", partial(self._pool_figure, figure))
        await asyncio.to_thread(forget_dead_processes, now=time.time())
        while True:
            await asyncio.to_thread(meters.flush, now=time.time())
            await asyncio.sleep(FLUSH_SECONDS)

    def _pool_figure(self, name: str) -> int:
        # The pool leaves out what is 0.
        return self.pool.get_stats().get(name, 0)

    async def _build_agent(self) -> None:
        try:
            await self.files.build()
        except UnavailableError as error:
            # Tried again, and answered with the reason, whenever somebody asks for the file.
            logger.warning("%s", error.detail)


def _report(task: asyncio.Task[Any]) -> None:
    """None of them should end by itself; one that did must not do so unseen."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s has ended: %r", task.get_coro(), error, exc_info=error)
