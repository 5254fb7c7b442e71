"""More requests at once than there may be database connections: they wait for their turn, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse
from django.test import RequestFactory

from config import crowd
from config.crowd import CrowdedHandler


class Inside:
    """Stands in for Django: says how many were let in at once, and answers when told to."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.answer = asyncio.Event()

    async def __call__(self, _handler: ASGIHandler, _request: Any) -> HttpResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.answer.wait()
        self.now -= 1
        return HttpResponse("done")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Inside:
    found = Inside()

    async def stand_in(self: ASGIHandler, request: Any) -> HttpResponse:
        return await found(self, request)

    monkeypatch.setattr(ASGIHandler, "get_response_async", stand_in)
    return found


@pytest.fixture
def handler(settings: Any) -> CrowdedHandler:
    settings.REQUESTS_AT_ONCE = 3
    return CrowdedHandler()


def ask(handler: CrowdedHandler, count: int) -> list[asyncio.Task[Any]]:
    request = RequestFactory().get("/", HTTP_ACCEPT_LANGUAGE="zh-hans")
    return [asyncio.create_task(handler.get_response_async(request)) for _ in range(count)]


async def test_no_more_than_so_many_are_worked_on_at_once_and_all_are_answered(handler, inside):
    asked = ask(handler, 20)
    await asyncio.sleep(0)
    inside.answer.set()
    assert [response.status_code for response in await asyncio.gather(*asked)] == [200] * 20
    assert inside.most == 3


async def test_who_waits_too_long_is_told_when_to_come_again(handler, inside, monkeypatch):
    monkeypatch.setattr(crowd, "WAIT_SECONDS", 0.01)
    first = ask(handler, 3)
    await asyncio.sleep(0)
    (late,) = ask(handler, 1)
    refused = await late
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert "几秒" in refused.content.decode()
    inside.answer.set()
    assert [response.status_code for response in await asyncio.gather(*first)] == [200] * 3
    assert (await ask(handler, 1)[0]).status_code == 200


async def test_a_request_that_fails_or_is_given_up_leaves_its_place(handler, inside):
    given_up = ask(handler, 3)
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    inside.answer.set()
    assert [response.status_code for response in await asyncio.gather(*ask(handler, 3))] == [200] * 3
