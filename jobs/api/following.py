"""Requests that wait, around Django: a log that is followed, and a job that is waited for.

Django answers first, as ever: who asks, what they may, whether it is there. Where its view leaves the rest to the event loop (handover.py), Django is done
with the request: thread, database connection and the place among REQUESTS_AT_ONCE are free again. What waits is a coroutine; it ends when its reader leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.core.handlers.asgi import ASGIHandler

from jobs.api.handover import KEY, Following, Handover, Places, Waiting
from jobs.api.stream import followed
from jobs.api.watch import JobWatch

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
BELOW = "/api/v1/jobs/"
# Parameters with which an answer may be long in coming.
NAMES = {"follow", "wait"}


@dataclass
class Answer:
    """What Django answered, kept until it is known what becomes of it."""

    messages: list[Message] = field(default_factory=list)

    async def keep(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"]) if self.messages else 500

    async def send_on(self, send: Send) -> None:
        for message in self.messages:
            await send(message)


class WaitingRequests:
    """An ASGI application around Django's. One a process."""

    def __init__(self, django: ASGIHandler) -> None:
        self._django = django
        self.places = Places()
        self._watch: JobWatch | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not may_wait(scope):
            await self._django(scope, receive, send)
            return
        handover = Handover(self.places)
        try:
            answer = await self._ask(scope, receive, handover)
            match handover.wish:
                case Following() as wish:
                    await unless_left(self._follow(wish, scope, answer, send), receive)
                case Waiting() as wish:
                    await unless_left(self._wait(wish, scope, send), receive)
                case None:
                    await answer.send_on(send)
        finally:
            handover.leave()

    async def _ask(self, scope: Scope, receive: Receive, handover: Handover) -> Answer:
        answer = Answer()
        await self._django({**scope, KEY: handover}, receive, answer.keep)
        return answer

    async def _follow(self, wish: Following, scope: Scope, answer: Answer, send: Send) -> None:
        async def may_go_on() -> bool:
            again = await self._ask(scope, Silent(), Handover(self.places, renews=True))
            return again.status == 200

        start = answer.messages[0]
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        await send({**start, "headers": headers})
        async with self._watching().of(wish.job) as news:
            async for text in followed(wish, news, may_go_on):
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait(self, wish: Waiting, scope: Scope, send: Send) -> None:
        """Then it is asked for as if nobody had waited."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wish.seconds
        async with self._watching().of(wish.job) as news:
            standing = await news.now()
            while standing.is_open and (left := until - loop.time()) > 0:
                standing = await news.changed(standing, left)
        pairs = [pair for pair in parse_qsl(scope["query_string"].decode("latin1")) if pair[0] != "wait"]
        await self._django({**scope, "query_string": urlencode(pairs).encode()}, Silent(), send)

    def _watching(self) -> JobWatch:
        """Made on the loop on which it is used."""
        self._watch = self._watch or JobWatch()
        return self._watch


def may_wait(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(BELOW):
        return False
    return any(name in NAMES for name, _value in parse_qsl(scope["query_string"].decode("latin1")))


class Silent:
    """A caller with an empty body, who then says nothing more."""

    def __init__(self) -> None:
        self._is_asked = False

    async def __call__(self) -> Message:
        if self._is_asked:
            await asyncio.Event().wait()
        self._is_asked = True
        return {"type": "http.request", "body": b"", "more_body": False}


async def unless_left(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Does the work; gives it up when the caller has gone."""
    tasks = [asyncio.create_task(work), asyncio.create_task(left(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
