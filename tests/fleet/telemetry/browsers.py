"""A browser's side of the live websocket."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

from config.asgi import application

OWN = "http://localhost"


class Page(ApplicationCommunicator):
    """A browser's socket. (That of channels.testing needs a server that we do not use.)"""

    def __init__(self, cookies: str, origin: str = OWN) -> None:
        headers = [(b"host", b"localhost"), (b"origin", origin.encode()), (b"cookie", cookies.encode())]
        scope = {"type": "websocket", "path": "/ws/live/", "query_string": b"", "headers": headers, "subprotocols": []}
        super().__init__(application, scope)

    async def connect(self) -> Any:
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output(timeout=5))["type"] == "websocket.accept"

    async def send_text(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self):
        return json.loads((await self.receive_output(timeout=5))["text"])

    async def subscribe(self, **wish):
        await self.send_text(json.dumps({"subscribe": wish}))
        return await self.hear()

    async def code_of_close(self) -> Any:
        while True:
            message = await self.receive_output(timeout=10)
            if message["type"] == "websocket.close":
                return message["code"]

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=5)


async def connected(page: Page) -> Page:
    assert await page.connect()
    return page
