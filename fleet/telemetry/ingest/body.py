"""Reading a request body within limits, compressed or not."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from fleet.telemetry.ingest.errors import BadBodyError, TooLargeError

Receive = Callable[[], Awaitable[dict[str, Any]]]

MAX_COMPRESSED_BYTES = 2 << 20
MAX_BYTES = 16 << 20
# Below this a body is decoded on the event loop; larger ones would hold up everybody else and go to a thread.
INLINE_BYTES = 256 << 10
# A client that sends slower than this is not an agent.
READ_SECONDS = 30.0

_GZIP = 16 + zlib.MAX_WBITS
_TOO_LARGE = "Send at most 2 MiB compressed and 16 MiB decompressed: halve the batch."


class ClientGoneError(Exception):
    """The client hung up before its request was complete; there is nobody to answer."""


async def read_body(receive: Receive, headers: dict[bytes, bytes]) -> bytes:
    """The body as sent. Raises TooLargeError before more than the limit is held in memory."""
    if _declared_length(headers) > MAX_COMPRESSED_BYTES:
        raise TooLargeError(_TOO_LARGE)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return _bounded(message.get("body", b""))
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await _read_rest(receive, message)
    except TimeoutError:
        raise BadBodyError(f"The body was not complete after {READ_SECONDS:.0f} s.") from None


async def _read_rest(receive: Receive, message: dict[str, Any]) -> bytes:
    body = bytearray()
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        _bounded(body)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()


def _bounded(body: Any) -> Any:
    if len(body) > MAX_COMPRESSED_BYTES:
        raise TooLargeError(_TOO_LARGE)
    return body


def _declared_length(headers: dict[bytes, bytes]) -> int:
    value = headers.get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


def decompress(body: bytes, headers: dict[bytes, bytes], *, limit: int = MAX_BYTES) -> bytes:
    """The decompressed body, never more than `limit` bytes of it in memory. Raises TooLargeError or BadBodyError."""
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding == b"identity":
        return body
    if encoding != b"gzip":
        raise BadBodyError("Content-Encoding must be gzip, or be left out.", field="Content-Encoding")
    inflater = zlib.decompressobj(_GZIP)
    try:
        data = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise BadBodyError(f"The body is not valid gzip: {error}") from None
    if len(data) > limit:
        raise TooLargeError(_TOO_LARGE)
    if not inflater.eof or inflater.unused_data:
        raise BadBodyError("The gzip body is cut short or followed by something else.")
    return data
