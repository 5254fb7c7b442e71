"""Who gets the page, and how often it is made anew.

Answered beside Django, like /healthz: a Prometheus asks by whatever name and holds no session. Only METRICS_TOKEN opens it, because what
it says is no team's business: which providers there are, how many machines, what fails.
"""

from __future__ import annotations

import asyncio
import hmac
import time

from django.conf import settings

from config.metrics.collect import collect
from config.static import Receive, Scope, Send

KEEP_SECONDS = 1.0
_REALM = (b"www-authenticate", b'Bearer realm="Rackrent metrics"')
_CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Callers within KEEP_SECONDS share one page."""

    def __init__(self) -> None:
        self._body = b""
        self._made_at = float("-inf")
        self._lock: asyncio.Lock | None = None

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["method"] not in {"GET", "HEAD"}:
            await _answer(send, 405, b"Use GET.\n")
        elif not settings.METRICS_TOKEN:
            await _answer(send, 403, b"This page is closed until METRICS_TOKEN is set: docs/operate.md.\n")
        elif not _opens(headers.get(b"authorization", b"")):
            await _answer(send, 401, b"Send METRICS_TOKEN as a bearer token.\n", _REALM)
        else:
            await _answer(send, 200, await self._page())

    async def _page(self) -> bytes:
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if time.monotonic() - self._made_at >= KEEP_SECONDS:
                self._body = await collect()
                self._made_at = time.monotonic()
            return self._body


def _opens(authorization: bytes) -> bool:
    kind, _, token = authorization.partition(b" ")
    return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), settings.METRICS_TOKEN.encode())


async def _answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    always = [
        (b"content-type", _CONTENT_TYPE),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*always, *headers]})
    await send({"type": "http.response.body", "body": body})


metrics = MetricsPage()
