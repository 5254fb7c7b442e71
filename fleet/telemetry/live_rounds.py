"""Access that ends, noticed: every few seconds one look at the database for all open sockets of the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from django.db import DatabaseError

from fleet.telemetry.live_access import Watch, watched_machines

logger = logging.getLogger(__name__)

NO_ACCESS, TRY_LATER = 4403, 1013
# Access that ends is noticed at once where it is announced, and after this time in any case.
CHECK_SECONDS = 3.0


class Socket(Protocol):
    @property
    def watch(self) -> Watch | None:
        """What it shows now; None before it said so and after its end."""

    def end(self, code: int) -> None:
        """Never waits: a browser that does not answer must not hold the others up."""

    async def follow(self, watch: Watch, machines: set[int]) -> None:
        """Listen to exactly these, unless it shows something else by now. Ends by itself what cannot listen."""


class Rounds:
    """Of one event loop. Runs while there is a socket."""

    def __init__(self) -> None:
        self._sockets: set[Socket] = set()
        self._soon = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, socket: Socket) -> None:
        self._sockets.add(socket)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def discard(self, socket: Socket) -> None:
        self._sockets.discard(socket)
        if not self._sockets and self._task is not None:
            self._task.cancel()
            self._task = None

    def hurry(self) -> None:
        """Something was announced. Many sockets that hear of it share the next round."""
        self._soon.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._soon.wait()
            self._soon.clear()
            try:
                await self.check()
            except Exception:
                # Whoever is left unchecked is shown nothing more; the rounds go on.
                logger.exception("Open pages could not be checked")
                self._end_all(TRY_LATER)

    async def check(self) -> None:
        asked = [(socket, watch) for socket in self._sockets if (watch := socket.watch) is not None]
        if not asked:
            return
        try:
            found = await watched_machines([watch for _socket, watch in asked])
        except DatabaseError:
            # What cannot be checked is not shown; the browsers come back by themselves.
            self._end_all(TRY_LATER)
            return
        await _settle([(*pair, machines) for pair, machines in zip(asked, found, strict=True)])

    def _end_all(self, code: int) -> None:
        for socket in list(self._sockets):
            if socket.watch is not None:
                socket.end(code)


async def _settle(found: Sequence[tuple[Socket, Watch, set[int] | None]]) -> None:
    """First those whose access ended: what others listen to is asked of the broker, which may take its time."""
    for socket, watch, machines in found:
        if machines is None and socket.watch is watch:
            socket.end(NO_ACCESS)
    for socket, watch, machines in found:
        if machines is not None:
            await socket.follow(watch, machines)


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = WeakKeyDictionary()


def rounds_here() -> Rounds:
    return _ROUNDS.setdefault(asyncio.get_running_loop(), Rounds())
