"""Static files, served beside Django: compressed, and cached for good where the name carries a hash.

WhiteNoise knows the files and the headers; its middleware is synchronous and would have Django read whole files into memory
under ASGI, so its table is served by a small ASGI callable instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

from whitenoise.middleware import WhiteNoiseMiddleware

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CHUNK_BYTES = 256 * 1024
SECURITY_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cross-origin-resource-policy", b"same-origin")]
_CONDITIONS = {"accept-encoding", "if-none-match", "if-modified-since", "range"}


class StaticFiles:
    """Answers below STATIC_URL and passes everything else on to `application`."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.table = WhiteNoiseMiddleware(get_response=None)
        self.prefix: str = self.table.static_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope["path"]) if scope["type"] == "http" and scope["path"].startswith(self.prefix) else None
        if found is None:
            await self.application(scope, receive, send)
            return
        response = found.get_response(scope["method"], _environ(scope))
        headers = [(name.lower().encode(), str(value).encode()) for name, value in response.headers]
        await send(
            {"type": "http.response.start", "status": int(response.status), "headers": headers + SECURITY_HEADERS}
        )
        await _send_file(response.file, send)

    def _find(self, path: str) -> Any:
        if self.table.autorefresh:
            return self.table.find_file(path)
        return self.table.files.get(path)


def _environ(scope: Scope) -> dict[str, str]:
    """The request headers that decide about the answer, named as WSGI names them."""
    headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    return {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers if name in _CONDITIONS}


async def _send_file(file: IO[bytes] | None, send: Send) -> None:
    if file is not None:
        with file:
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
