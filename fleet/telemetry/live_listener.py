"""What the broker says of machines, handed to the open sockets of this process: one connection for all, each message read once.

While the connection holds, the broker delivers all of what is published, in order. What was published while it was cut is gone, and every
socket is told that it missed something. The channel layer could not tell: it connects again by itself and says nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from fleet.telemetry.live import channel_name, machine_of_channel

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
# A connection that says nothing is asked whether it still lives.
SILENCE_SECONDS = 10.0
# Of messages that came at once, so many are handed out before the sockets' own tasks get their turn; fewer than a socket may leave unsent.
# One at a time would be one a round of the event loop, which on a busy machine is seconds behind in no time.
MESSAGES_A_TURN = 100


class Hearer(Protocol):
    def hear(self, text: str) -> None:
        """Never waits."""

    def note_gap(self) -> None:
        """Something that it listens to may have been lost."""


class _PubSub(PubSub):
    """Says when it had to connect again. (The first connection is made before anybody can listen.)"""

    def __init__(self, client: Any, reconnected: Callable[[], None]) -> None:
        super().__init__(client.connection_pool, ignore_subscribe_messages=True)
        self._reconnected = reconnected

    async def on_connect(self, connection: Any) -> None:
        # Listening again comes first: what is said from now on is heard, what was said before is the gap.
        await super().on_connect(connection)
        self._reconnected()


class Listener:
    """Of one event loop. Connected while somebody listens."""

    def __init__(self) -> None:
        self._hearers: dict[int, set[Hearer]] = {}
        self._changing = asyncio.Lock()
        self._client: Any = None
        self._pubsub: _PubSub | None = None
        self._task: asyncio.Task[None] | None = None

    async def add(self, hearer: Hearer, machines: Collection[int]) -> None:
        """Raises RedisError or OSError, with nothing added, while the broker is away."""
        async with self._changing:
            new = [pk for pk in machines if pk not in self._hearers]
            if new:
                await self._connection().subscribe(*map(channel_name, new))
                self._listen()
            for pk in machines:
                self._hearers.setdefault(pk, set()).add(hearer)

    async def remove(self, hearer: Hearer, machines: Collection[int]) -> None:
        async with self._changing:
            left = [pk for pk in machines if self._hearers.get(pk) == {hearer}]
            for pk in machines:
                self._hearers.get(pk, set()).discard(hearer)
            for pk in left:
                del self._hearers[pk]
            if not self._hearers:
                await self._close()
            elif left and self._pubsub is not None:
                # A broker that is away has forgotten them anyway; what comes of them later finds nobody.
                with contextlib.suppress(RedisError, OSError):
                    await self._pubsub.unsubscribe(*map(channel_name, left))

    def _connection(self) -> _PubSub:
        if self._pubsub is None:
            self._client = redis.asyncio.from_url(
                settings.REDIS_URL, socket_connect_timeout=3, health_check_interval=SILENCE_SECONDS
            )
            self._pubsub = _PubSub(self._client, self._note_gap)
        return self._pubsub

    def _listen(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(self._connection()))

    async def _run(self, pubsub: _PubSub) -> None:
        for turn in itertools.count(1):
            try:
                message = await pubsub.get_message(timeout=SILENCE_SECONDS)
            except (RedisError, OSError) as error:
                logger.warning("Open pages hear nothing: the broker is away (%s)", type(error).__name__)
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if message is not None:
                self._hand_out(message)
            if turn % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)

    def _hand_out(self, message: dict[str, Any]) -> None:
        text = message["data"].decode()
        for hearer in self._hearers.get(machine_of_channel(message["channel"]), ()):
            hearer.hear(text)

    def _note_gap(self) -> None:
        for hearer in set().union(*self._hearers.values()):
            hearer.note_gap()

    async def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._pubsub is not None:
            await self._pubsub.aclose()  # type: ignore[no-untyped-call]
            await self._client.aclose()
        self._task = self._pubsub = self._client = None


_LISTENERS: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener_here() -> Listener:
    return _LISTENERS.setdefault(asyncio.get_running_loop(), Listener())
