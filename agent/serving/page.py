"""One metrics page over loopback, within limits of time and bytes, and the series on it that anybody asks for."""

from __future__ import annotations

import re
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.serving.address import Address

    Labels = dict[str, str]
    Series = dict[str, list[tuple[Labels, float]]]

_DEADLINE_SECONDS = 3.0
# vLLM with several models serves some 200 kB
_MOST_BYTES = 4 << 20
_MOST_SERIES = 20_000
_SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


class PageError(Exception):
    """The page cannot be used; the text is for the log."""


def fetch_page(address: Address) -> str:
    """Raises PageError, and OSError (of which TimeoutError says that the engine is there and slow)."""
    # HTTP/1.0: the body ends with the connection, so that nothing has to be believed about its length
    request = f"GET {address.path} HTTP/1.0\r\nHost: {address.host}:{address.port}\r\nAccept: text/plain\r\n\r\n"
    until = time.monotonic() + _DEADLINE_SECONDS
    with socket.create_connection((address.host, address.port), timeout=_DEADLINE_SECONDS) as connection:
        connection.sendall(request.encode("ascii"))
        return _body(_read_all(connection, until))


def _read_all(connection: socket.socket, until: float) -> bytes:
    answer = bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise socket.timeout("the page did not end in time")  # TimeoutError is another class before 3.10
        connection.settimeout(left)
        chunk = connection.recv(65536)
        if not chunk:
            return bytes(answer)
        answer += chunk
        if len(answer) > _MOST_BYTES:
            raise PageError("the page is too large for that of a serving engine")


def _body(answer: bytes) -> str:
    head, found, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if not found or status != [b"200"]:
        raise PageError(f"it answers {head[:60]!r}: that is no page of metrics")
    if b"transfer-encoding" in head.lower():
        raise PageError("it answers in chunks, which was not asked for")
    return body.decode("utf-8", "replace")


def parse_page(text: str, prefixes: tuple[str, ...]) -> Series:
    """Series whose names begin with one of ``prefixes``, by name. Lines that are none are passed over."""
    found: Series = {}
    count = 0
    for line in text.splitlines():
        if not line.startswith(prefixes):
            continue
        match = _SERIES.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        found.setdefault(match[1], []).append((_labels(match[2] or ""), value))
        count += 1
        if count >= _MOST_SERIES:
            raise PageError("the page has too many series for that of a serving engine")
    return found


def _labels(text: str) -> Labels:
    return {name: re.sub(r"\\.", _unescaped, value) if "\\" in value else value for name, value in _LABEL.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], match[0])
