"""The stub of ingest as an ASGI application, for programs that need a real port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import httpx

from tests.fleet.sandbox.stub_ingest import StubIngest

Message = MutableMapping[str, Any]


def application(stub: StubIngest) -> Callable[..., Awaitable[None]]:
    async def answer(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        content, more = b"", True
        while more:
            message = await receive()
            content, more = content + message.get("body", b""), message.get("more_body", False)
        response = stub(httpx.Request("POST", f"http://stub{scope['path']}", headers=scope["headers"], content=content))
        headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.content})

    return answer
