"""GET /healthz: whether database, broker, worker and beat work, each measured at most once a second.

Answered beside Django, so that probes need no Host header of ours, no session and no sign-in. Nothing in it is secret.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import psycopg
from django.conf import settings

from config import pulse
from config.celery import app
from config.static import Receive, Scope, Send

logger = logging.getLogger(__name__)
T = TypeVar("T")

TIMEOUT_SECONDS = 4.0
KEEP_SECONDS = 1.0


@dataclass(frozen=True)
class Part:
    """One part of the installation. `age_seconds`: how long ago it was last seen to work, where that is how it is measured."""

    ok: bool
    detail: str
    age_seconds: float | None = None


class Health:
    """Measures the parts; callers within KEEP_SECONDS share one result, so that probes from anywhere cost nothing."""

    def __init__(self) -> None:
        # Blocking clients have a few threads of their own: a broker that swallows connections must not stop anything else.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="health")
        self._parts: dict[str, Part] = {}
        self._measured_at = float("-inf")
        self._lock: asyncio.Lock | None = None

    async def parts(self) -> dict[str, Part]:
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if time.monotonic() - self._measured_at >= KEEP_SECONDS:
                self._parts = await self._measure()
                self._measured_at = time.monotonic()
            return self._parts

    async def _measure(self) -> dict[str, Part]:
        measures = {
            "database": measured(database()),
            "broker": measured(self._in_thread(broker)),
            "worker": measured(self._in_thread(lambda: process(pulse.WORKER))),
            "beat": measured(self._in_thread(lambda: process(pulse.BEAT))),
        }
        return dict(zip(measures, await asyncio.gather(*measures.values()), strict=True))

    def _in_thread(self, function: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, function)


async def measured(measure: Awaitable[Part]) -> Part:
    """The part, or, where measuring it failed or took too long, a part that is not ok. Why goes to the log, not to strangers."""
    try:
        return await asyncio.wait_for(measure, TIMEOUT_SECONDS)
    except TimeoutError:
        return Part(ok=False, detail=f"no answer within {TIMEOUT_SECONDS:.0f} s")
    except Exception:
        logger.exception("A health check failed")
        return Part(ok=False, detail="no connection")


async def database() -> Part:
    began = time.monotonic()
    # A connection of its own: the web process may hold good ones to a server that takes no new ones.
    async with await psycopg.AsyncConnection.connect(settings.DATABASE_URL, connect_timeout=3) as connection:
        await connection.execute("SELECT 1")
    return Part(ok=True, detail=f"answered in {(time.monotonic() - began) * 1000:.0f} ms")


def broker() -> Part:
    began = time.monotonic()
    with app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=0, timeout=3, reraise_as_library_errors=False)
    return Part(ok=True, detail=f"answered in {(time.monotonic() - began) * 1000:.0f} ms")


def process(key: str) -> Part:
    age = pulse.age_seconds(key, time.time())
    if age is None:
        return Part(ok=False, detail="not seen yet")
    if age > pulse.STALE_SECONDS:
        return Part(ok=False, detail=f"last seen {age:.0f} s ago", age_seconds=round(age, 1))
    return Part(ok=True, detail="running", age_seconds=round(age, 1))


health = Health()


async def healthz(scope: Scope, _receive: Receive, send: Send) -> None:
    if scope["method"] not in {"GET", "HEAD"}:
        await _answer(send, 405, {"status": "method not allowed"})
        return
    parts = await health.parts()
    works = all(part.ok for part in parts.values())
    body = {"status": "ok" if works else "failing", **{name: asdict(part) for name, part in parts.items()}}
    await _answer(send, 200 if works else 503, body)


async def _answer(send: Send, status: int, body: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
