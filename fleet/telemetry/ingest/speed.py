"""GET and POST /ingest/v1/speed: bytes that mean nothing, for a machine that measures its network. Only while it was asked to, and bounded."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.answers import Send
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.ingest.errors import BusyError, NotFoundError

CHUNK_BYTES = 1 << 20
DOWN_CHUNKS = 8
# What one machine may move within an hour, both ways together: a few tests.
BYTES_AN_HOUR = 512 << 20
# Transfers at the same time, over all machines: this process has samples to take.
AT_ONCE = 2
HOUR_SECONDS = 3600.0

_ASKED = """
SELECT 1 FROM agent_action WHERE instance_id = %s AND name = 'accept' AND state IN ('asked', 'running') LIMIT 1
"""


class Speed:
    def __init__(self) -> None:
        self._running = 0
        # Nothing on the way can compress it.
        self._chunk = os.urandom(CHUNK_BYTES)

    @contextmanager
    def admitted(self, agent: KnownAgent, size: int) -> Iterator[None]:
        """Raises BusyError."""
        if self._running >= AT_ONCE:
            raise BusyError("Other machines measure their network at the moment. Try again later.")
        if not spend(agent.moved, size, time.monotonic()):
            raise BusyError("This machine has measured its network enough for an hour.")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def send(self, send: Send) -> None:
        length = b"%d" % (CHUNK_BYTES * DOWN_CHUNKS)
        headers = [
            (b"content-type", b"application/octet-stream"),
            (b"cache-control", b"no-store"),
            (b"content-length", length),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number in range(DOWN_CHUNKS):
            more = number < DOWN_CHUNKS - 1
            await send({"type": "http.response.body", "body": self._chunk, "more_body": more})


def spend(moved: deque[tuple[float, int]], size: int, now: float) -> bool:
    """Whether so many bytes more are within the hour's; then they are counted."""
    while moved and moved[0][0] <= now - HOUR_SECONDS:
        moved.popleft()
    if sum(one for _, one in moved) + size > BYTES_AN_HOUR:
        return False
    moved.append((now, size))
    return True


async def check_asked(pool: AsyncConnectionPool[Any], agent: KnownAgent) -> None:
    """Raises NotFoundError or UnavailableError."""
    async with reaching_database(), pool.connection() as connection:
        row = await (await connection.execute(_ASKED, [agent.instance_id])).fetchone()
    if row is None:
        raise NotFoundError("This machine was not asked to test itself.")
