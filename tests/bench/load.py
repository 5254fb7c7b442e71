"""A load generator that leaves the processor to what it measures: raw sockets, requests made beforehand, answers barely read."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

LOOPBACK = "127.0.0.1"


@dataclass(slots=True)
class Result:
    """`latencies` in seconds, in the order of the answers; `acked`: numbers of the requests that were answered with 200."""

    acked: list[int] = field(default_factory=list)
    refused: dict[int, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    # Not answered within the time to drain; 0 unless that was allowed.
    unanswered: int = 0

    def answered(self, number: int, status: int, latency: float) -> None:
        if status == 200:
            self.acked.append(number)
            self.latencies.append(latency)
        else:
            self.refused[status] = self.refused.get(status, 0) + 1


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request under way."""

    def __init__(self, done: Callable[[Connection, int], None]) -> None:
        self._done = done
        self._received = b""
        self.transport: asyncio.Transport | None = None
        self.number = -1
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self, number: int, request: bytes, due: float) -> None:
        self.number, self.due = number, due
        assert self.transport is not None
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        if mark and len(body) >= _content_length(head):
            self._received = b""
            self._done(self, int(head[9:12]))


def _content_length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0])


class Load:
    """`requests` are sent in order over `connections` sockets to one port of this machine."""

    def __init__(
        self,
        port: int,
        requests: Sequence[bytes],
        connections: int,
        *,
        drain_seconds: float = 120,
        must_drain: bool = True,
    ) -> None:
        self._drain_seconds, self._must_drain = drain_seconds, must_drain
        self._port = port
        self._requests = requests
        self._connections = connections
        self._next: Iterator[int] = iter(range(len(requests)))
        self._idle: deque[Connection] = deque()
        self._late: deque[tuple[int, float]] = deque()
        self._under_way = 0
        self._result = Result()
        self._ends_at = 0.0
        # In epoch seconds, of the request that was due first.
        self.began_at = 0.0
        self._drained = asyncio.Event()

    async def closed_loop(self, seconds: float) -> Result:
        """Every connection sends its next request as soon as it has its answer."""
        connections = await self._connect(self._continue)
        started = time.perf_counter()
        self._ends_at = started + seconds
        for connection in connections:
            self._send_next(connection)
        return await self._finish(connections, started)

    async def open_loop(self, per_second: float, seconds: float) -> Result:
        """Requests fall due at an even rate, whether or not answers come; a latency counts from when its request was due."""
        connections = await self._connect(self._release)
        self._idle.extend(connections)
        started, self.began_at = time.perf_counter(), time.time()
        for step in range(int(per_second * seconds)):
            due = started + step / per_second
            wait = due - time.perf_counter()
            if wait > 0.001:
                await asyncio.sleep(wait)
            number = next(self._next, None)
            if number is not None:
                self._late.append((number, due))
                self._send_late()
        self._ends_at = time.perf_counter()
        return await self._finish(connections, started)

    async def _connect(self, done: Callable[[Connection, int], None]) -> list[Connection]:
        loop = asyncio.get_running_loop()
        return [
            (await loop.create_connection(lambda: Connection(done), LOOPBACK, self._port))[1]
            for _ in range(self._connections)
        ]

    async def _finish(self, connections: list[Connection], started: float) -> Result:
        if self._under_way or self._late or time.perf_counter() < self._ends_at:
            await self._drain()
        self._result.seconds = time.perf_counter() - started
        for connection in connections:
            assert connection.transport is not None
            connection.transport.close()
        return self._result

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self._drain_seconds):
                await self._drained.wait()
        except TimeoutError:
            if self._must_drain:
                raise
            self._result.unanswered = self._under_way + len(self._late)

    def _send_next(self, connection: Connection) -> None:
        now = time.perf_counter()
        number = next(self._next, None) if now < self._ends_at else None
        if number is not None:
            self._under_way += 1
            connection.send(number, self._requests[number], now)
        elif not self._under_way:
            self._drained.set()

    def _note(self, connection: Connection, status: int) -> None:
        self._under_way -= 1
        self._result.answered(connection.number, status, time.perf_counter() - connection.due)

    def _continue(self, connection: Connection, status: int) -> None:
        self._note(connection, status)
        self._send_next(connection)

    def _release(self, connection: Connection, status: int) -> None:
        self._note(connection, status)
        self._idle.append(connection)
        self._send_late()
        if not self._under_way and not self._late and self._ends_at:
            self._drained.set()

    def _send_late(self) -> None:
        while self._late and self._idle:
            number, due = self._late.popleft()
            self._under_way += 1
            self._idle.popleft().send(number, self._requests[number], due)
