"""One page over the network, within limits: the deadline covers name, connection, headers and the last byte of the body."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping

import httpx

from fleet.guard import Guard, GuardedTransport, RefusedAddressError
from fleet.telemetry.ingest.body import decompress
from fleet.telemetry.ingest.errors import BadBodyError, TooLargeError

DEADLINE_SECONDS = 8.0
# node_exporter with every collector serves 60 kB; dcgm-exporter with 8 GPUs cut into parts, less than 1 MiB.
MAX_BYTES = 4 << 20
HEADERS = {
    "Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1",
    "Accept-Encoding": "gzip",
    "User-Agent": "rackrent-scrape",
}


class FetchError(Exception):
    """`code`: a key of scrape.words.FAILURES; `detail` stands in its text and holds no secret. `offered`: a host key nobody confirmed."""

    def __init__(self, code: str, detail: str = "", *, offered: str = "") -> None:
        super().__init__(code)
        self.code, self.detail, self.offered = code, detail, offered


def make_client(guard: Guard, *, connections: int) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=0)
    transport = GuardedTransport(guard, limits=limits)
    return httpx.AsyncClient(
        transport=transport, timeout=DEADLINE_SECONDS, follow_redirects=False, trust_env=False, headers=HEADERS
    )


async def fetch_page(client: httpx.AsyncClient, url: str, token: str) -> str:
    """Raises FetchError."""
    return await fetch_text(client, url, token, deadline_seconds=DEADLINE_SECONDS, most_bytes=MAX_BYTES)


async def fetch_text(
    client: httpx.AsyncClient,
    url: str,
    token: str,
    *,
    asked: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    deadline_seconds: float,
    most_bytes: int,
    accepts: Collection[int] = (200,),
) -> str:
    """asked: fields of a form to post; None: the page is got. Raises FetchError."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    method = "GET" if asked is None else "POST"
    stream = client.stream(method, url, data=dict(asked or {}), headers=sent, timeout=deadline_seconds)
    try:
        async with asyncio.timeout(deadline_seconds), stream as response:
            _check_status(response, accepts)
            body = await _read(response, most_bytes)
    except (TimeoutError, httpx.TimeoutException):
        raise FetchError("timeout", f"{deadline_seconds:.0f}") from None
    except RefusedAddressError as error:
        # Which address a name has inside the installation's own network is nothing to tell a team.
        raise FetchError(f"refused_{error.code}", httpx.URL(url).host) from None
    except httpx.ConnectError as error:
        raise FetchError("tls" if _is_tls(error) else "unreachable") from None
    except ExceptionGroup:
        # One for each address that was tried: what none of httpx's errors stands for.
        raise FetchError("unreachable") from None
    except httpx.HTTPError as error:
        raise FetchError("broken", type(error).__name__) from None
    return _text(body, response.headers.get("content-encoding", "identity"), most_bytes)


def _check_status(response: httpx.Response, accepts: Collection[int]) -> None:
    status = response.status_code
    if response.has_redirect_location or response.is_redirect:
        raise FetchError("redirect", str(status))
    if status in (401, 403):
        raise FetchError("token", str(status))
    if status not in accepts:
        raise FetchError("status", str(status))


async def _read(response: httpx.Response, most_bytes: int) -> bytes:
    """As sent: what httpx would decompress by itself has no bound."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise FetchError("too_large", str(most_bytes >> 20))
    return bytes(body)


def _text(body: bytes, encoding: str, most_bytes: int) -> str:
    try:
        data = decompress(body, {b"content-encoding": encoding.encode()}, limit=most_bytes)
    except TooLargeError:
        raise FetchError("too_large", str(most_bytes >> 20)) from None
    except BadBodyError:
        raise FetchError("broken", "gzip") from None
    return data.decode(errors="replace")


def _is_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
