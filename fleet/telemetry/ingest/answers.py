"""What goes back: JSON, refusals, files."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.bundle import AgentFile
from fleet.telemetry.ingest.errors import RefusalError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

_JSON = (b"content-type", b"application/json")
_NO_STORE = (b"cache-control", b"no-store")
_encode = msgspec.json.Encoder().encode


def config_json(*, interval_seconds: int, report_seconds: int, paused: bool, file: AgentFile | None) -> bytes:
    """All that a server can ask of an agent."""
    config: dict[str, Any] = {
        "interval_seconds": interval_seconds,
        "report_seconds": report_seconds,
        "paused": paused,
        "server_time": time.time(),
    }
    if file is not None:
        config |= {"agent_version": file.version, "agent_sha256": file.sha256}
    return _encode(config)


def config_of(agent: KnownAgent, file: AgentFile | None) -> bytes:
    return config_json(
        interval_seconds=agent.interval_seconds,
        report_seconds=agent.report_seconds,
        paused=agent.paused,
        file=file,
    )


async def send_json(send: Send, body: bytes, *, status: int = 200, headers: tuple[Header, ...] = ()) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, _NO_STORE, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_refusal(send: Send, refusal: RefusalError) -> None:
    body = {"error": refusal.code, "detail": refusal.detail, "field": refusal.field}
    headers: tuple[Header, ...] = ()
    if refusal.retry_after is not None:
        headers = ((b"retry-after", b"%d" % refusal.retry_after),)
    if refusal.status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    await send_json(send, _encode(body), status=refusal.status, headers=headers)


async def send_file(
    send: Send, data: bytes, *, sha256: str, content_type: bytes, if_none_match: bytes, head: bool
) -> None:
    etag = f'"{sha256}"'.encode()
    headers: list[Header] = [
        (b"etag", etag),
        (b"x-checksum-sha256", sha256.encode()),
        (b"cache-control", b"no-cache"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if etag in {part.strip() for part in if_none_match.split(b",")}:
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    headers += [(b"content-type", content_type), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else data})
