"""The websocket /ws/live/: samples of the machines that a page shows, for as long as its reader may see them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Annotated, Any
from weakref import WeakSet

import msgspec
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from msgspec import Meta
from redis.exceptions import RedisError

from fleet.meters import meters
from fleet.teams.access import user_group
from fleet.telemetry.live import gap_message
from fleet.telemetry.live_access import MAX_MACHINES, Watch, watched_machines
from fleet.telemetry.live_listener import listener_here
from fleet.telemetry.live_rounds import TRY_LATER, rounds_here

ANONYMOUS, TOO_SLOW = 4401, 4408
# A browser that lags so far behind is cut off; it comes back and reads what it missed as a series.
MAX_UNSENT = 500


RowId = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]


class Wish(msgspec.Struct):
    """Which machines a page shows; without a list, all of the team, those that come later included."""

    team: Annotated[str, Meta(max_length=60, pattern=r"^[-a-zA-Z0-9_]+\Z")]
    machines: Annotated[list[RowId], Meta(max_length=MAX_MACHINES)] | None = None


class Request(msgspec.Struct):
    subscribe: Wish


_decode = msgspec.json.Decoder(Request).decode
_encode = msgspec.json.Encoder().encode


# Weak, so that a connection that ended without saying so does not count for ever.
OPEN: WeakSet[LiveConsumer] = WeakSet()
meters.show("websocket_clients", lambda: len(OPEN))


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        self.watch: Watch | None = None
        self.heard: set[int] = set()
        self.following = asyncio.Lock()
        self.unsent: deque[str] = deque()
        self.news = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        OPEN.add(self)
        user = self.scope["user"]
        # Accepted first: a browser learns the reason of a refusal only from the close of an open socket.
        await self.accept()
        if not user.is_authenticated:
            await self.close(ANONYMOUS)
            return
        await self.channel_layer.group_add(user_group(user.pk), self.channel_name)
        self.tasks.append(asyncio.create_task(self._send_news()))
        rounds_here().add(self)

    async def disconnect(self, code: int) -> None:
        OPEN.discard(self)
        rounds_here().discard(self)
        self.watch = None
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        async with self.following:
            await listener_here().remove(self, self.heard)
        if self.tasks:
            await self.channel_layer.group_discard(user_group(self.scope["user"].pk), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            wish = _decode(text_data or "").subscribe
        except msgspec.MsgspecError as error:
            self._say({"type": "refused", "reason": f'Send {{"subscribe": {{"team": …}}}}: {error}'})
            return
        watch = Watch(self.scope["session"].session_key or "", wish.team, _as_set(wish.machines))
        try:
            (found,) = await watched_machines([watch])
        except DatabaseError:
            self.end(TRY_LATER)
            return
        if found is None:
            self._say({"type": "refused", "reason": "There is no such team or machine."})
            return
        self.watch = watch
        await self.follow(watch, found)
        if self.watch is watch:
            self._say({"type": "subscribed", "machines": sorted(found)})

    def hear(self, text: str) -> None:
        # What was on its way when access ended is not told.
        if self.watch is not None:
            self._put(text)

    def note_gap(self) -> None:
        if self.watch is not None:
            self._say(gap_message(None, now=time.time()))

    async def access_changed(self, event: dict[str, Any]) -> None:
        rounds_here().hurry()

    def _say(self, message: dict[str, Any]) -> None:
        self._put(_encode(message).decode())

    def _put(self, text: str) -> None:
        """Never waits: the channel layer's own queue has no bound, so it must be emptied at once."""
        if len(self.unsent) <= MAX_UNSENT:
            self.unsent.append(text)
        self.news.set()

    async def _send_news(self) -> None:
        while True:
            await self.news.wait()
            self.news.clear()
            while self.unsent:
                if len(self.unsent) > MAX_UNSENT:
                    meters.count("live_cut_off")
                    self.end(TOO_SLOW)
                    return
                await self.send(self.unsent.popleft())

    def end(self, code: int) -> None:
        self.watch = None
        self.unsent.clear()
        self.tasks.append(asyncio.create_task(self.close(code)))

    async def follow(self, watch: Watch, machines: set[int]) -> None:
        async with self.following:
            # Ended meanwhile, or asked for something else.
            if self.watch is not watch:
                return
            try:
                await self._listen_to(machines)
            except (RedisError, OSError):
                # It would not hear of all that it shows.
                self.end(TRY_LATER)

    async def _listen_to(self, machines: set[int]) -> None:
        if left := self.heard - machines:
            await listener_here().remove(self, left)
            self.heard = self.heard & machines
        if new := machines - self.heard:
            await listener_here().add(self, new)
            self.heard = machines


def _as_set(machines: list[int] | None) -> frozenset[int] | None:
    return None if machines is None else frozenset(machines)
