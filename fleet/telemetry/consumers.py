"""The websocket /ws/live/: samples of the machines that a page shows, for as long as its reader may see them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Annotated, Any
from weakref import WeakSet

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from msgspec import Meta

from fleet.meters import meters
from fleet.teams.access import membership_in, session_still_valid, user_group
from fleet.telemetry.live import group_name, machines_of

ANONYMOUS, NO_ACCESS, TOO_SLOW, TRY_LATER = 4401, 4403, 4408, 1013
# Access that ends is noticed at once where it is announced, and after this time in any case.
CHECK_SECONDS = 3.0
# A browser that lags so far behind is cut off; it comes back and reads what it missed as a series.
MAX_UNSENT = 500
MAX_MACHINES = 2_000


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
        self.wish: Wish | None = None
        self.watched: set[int] = set()
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
        self.tasks = [asyncio.create_task(work) for work in (self._send_news(), self._keep_checking())]

    async def disconnect(self, code: int) -> None:
        OPEN.discard(self)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self._watch(set())
        if self.tasks:
            await self.channel_layer.group_discard(user_group(self.scope["user"].pk), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            wish = _decode(text_data or "").subscribe
        except msgspec.MsgspecError as error:
            self._say({"type": "refused", "reason": f'Send {{"subscribe": {{"team": …}}}}: {error}'})
            return
        found = await self._machines(wish)
        if found is None:
            self._say({"type": "refused", "reason": "There is no such team or machine."})
            return
        self.wish = wish
        await self._watch(found)
        self._say({"type": "subscribed", "machines": sorted(found)})

    async def live_message(self, event: dict[str, Any]) -> None:
        self._put(event["text"])

    async def access_changed(self, event: dict[str, Any]) -> None:
        await self._check()

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
                    await self._end(TOO_SLOW)
                    return
                await self.send(self.unsent.popleft())

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self._check()

    async def _check(self) -> None:
        """Whether the reader may still look; machines that joined or left the team are followed."""
        if self.wish is None:
            return
        try:
            found = await self._machines(self.wish)
        except DatabaseError:
            # What cannot be checked is not shown; the browser comes back by itself.
            await self._end(TRY_LATER)
            return
        if found is None:
            await self._end(NO_ACCESS)
        else:
            await self._watch(found)

    async def _end(self, code: int) -> None:
        self.wish = None
        self.unsent.clear()
        await self.close(code)

    async def _watch(self, machines: set[int]) -> None:
        for instance_id in machines - self.watched:
            await self.channel_layer.group_add(group_name(instance_id), self.channel_name)
        for instance_id in self.watched - machines:
            await self.channel_layer.group_discard(group_name(instance_id), self.channel_name)
        self.watched = machines

    @database_sync_to_async  # type: ignore[untyped-decorator]
    def _machines(self, wish: Wish) -> set[int] | None:
        """The ids to watch, or None: not a member (any more), signed out, or a machine that is not the team's."""
        if not session_still_valid(session_key=self.scope["session"].session_key or "", slug=wish.team):
            return None
        membership = membership_in(user=self.scope["user"], slug=wish.team)
        if membership is None:
            return None
        mine = machines_of(membership.team)
        if wish.machines is None:
            return set(mine.order_by("pk").values_list("pk", flat=True)[:MAX_MACHINES])
        found = set(mine.filter(pk__in=wish.machines).values_list("pk", flat=True))
        return found if found == set(wish.machines) else None
