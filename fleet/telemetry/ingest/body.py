"""Reading a request body within limits, compressed or not."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import msgspec

from fleet.telemetry.ingest.errors import BadBodyError, InvalidBodyError, TooLargeError
from fleet.telemetry.sanitise import BadJsonError, Decoded, InvalidError, Reader

T = TypeVar("T", bound=msgspec.Struct)
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Mapping[bytes, bytes]

MAX_COMPRESSED_BYTES = 2 << 20
MAX_BYTES = 16 << 20
# Below this a body is decoded on the event loop; larger ones would hold up everybody else and go to a thread.
INLINE_BYTES = 256 << 10
# Decoding 16 MiB takes a few hundred MiB for a moment: so many at once, the others wait.
LARGE_BODIES_AT_ONCE = 2
# A client that sends slower than this is not an agent.
READ_SECONDS = 30.0

_GZIP = 16 + zlib.MAX_WBITS
_TOO_LARGE = "Send at most 2 MiB compressed and 16 MiB decompressed: halve the batch."


class ClientGoneError(Exception):
    """The client hung up before its request was complete; there is nobody to answer."""


class BodyReader:
    """Reads requests; at most LARGE_BODIES_AT_ONCE large ones are decoded at a time, off the event loop."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(LARGE_BODIES_AT_ONCE)

    async def read(self, reader: Reader[T], receive: Receive, headers: Headers) -> Decoded[T]:
        """Raises RefusalError, or ClientGoneError."""
        body = await read_body(receive, headers)
        if len(body) <= INLINE_BYTES:
            try:
                return _decode(reader, decompress(body, headers, limit=INLINE_BYTES))
            except _LargeError:
                pass
        async with self._large:
            return await asyncio.to_thread(lambda: _decode(reader, decompress(body, headers)))


def _decode(reader: Reader[T], body: bytes) -> Decoded[T]:
    try:
        return reader.read(body)
    except BadJsonError as error:
        raise BadBodyError(str(error)) from None
    except InvalidError as error:
        raise InvalidBodyError(error.detail, field=error.field) from None


class _LargeError(TooLargeError):
    """Larger than the limit asked for, which need not be the last word."""


async def read_body(receive: Receive, headers: Headers) -> bytes:
    """The body as sent. Raises TooLargeError before more than the limit is held in memory."""
    if _declared_length(headers) > MAX_COMPRESSED_BYTES:
        raise TooLargeError(_TOO_LARGE)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        _check_size(body)
        return body
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await _read_rest(receive, message)
    except TimeoutError:
        raise BadBodyError(f"The body was not complete after {READ_SECONDS:.0f} s.") from None


async def _read_rest(receive: Receive, message: MutableMapping[str, Any]) -> bytes:
    body = bytearray()
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        _check_size(body)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MAX_COMPRESSED_BYTES:
        raise TooLargeError(_TOO_LARGE)


def _declared_length(headers: Headers) -> int:
    value = headers.get(b"content-length", b"0")
    return int(value[:20]) if value.isdigit() else 0


def decompress(body: bytes, headers: Headers, *, limit: int = MAX_BYTES) -> bytes:
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
        raise _LargeError(_TOO_LARGE)
    if not inflater.eof or inflater.unused_data:
        raise BadBodyError("The gzip body is cut short or followed by something else.")
    return data
