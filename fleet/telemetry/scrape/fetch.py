"""One page over the network, within limits: the deadline covers name, connection, headers and the last byte of the body."""

from __future__ import annotations

import asyncio
import ssl

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
    """`code`: a key of scrape.words.FAILURES; `detail` stands in its text and holds no secret."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


def make_client(guard: Guard, *, connections: int) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=0)
    transport = GuardedTransport(guard, limits=limits)
    return httpx.AsyncClient(
        transport=transport, timeout=DEADLINE_SECONDS, follow_redirects=False, trust_env=False, headers=HEADERS
    )


async def fetch_page(client: httpx.AsyncClient, url: str, token: str) -> str:
    """Raises FetchError."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), client.stream("GET", url, headers=headers) as response:
            _check_status(response)
            body = await _read(response)
    except (TimeoutError, httpx.TimeoutException):
        raise FetchError("timeout", f"{DEADLINE_SECONDS:.0f}") from None
    except RefusedAddressError as error:
        # Which address a name has inside the installation's own network is nothing to tell a team.
        raise FetchError(f"refused_{error.code}", httpx.URL(url).host) from None
    except httpx.ConnectError as error:
        raise FetchError("tls" if _is_tls(error) else "unreachable") from None
    except httpx.HTTPError as error:
        raise FetchError("broken", type(error).__name__) from None
    return _text(body, response.headers.get("content-encoding", "identity"))


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if response.has_redirect_location or response.is_redirect:
        raise FetchError("redirect", str(status))
    if status in (401, 403):
        raise FetchError("token", str(status))
    if status != 200:
        raise FetchError("status", str(status))


async def _read(response: httpx.Response) -> bytes:
    """As sent: what httpx would decompress by itself has no bound."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            raise FetchError("too_large", str(MAX_BYTES >> 20))
    return bytes(body)


def _text(body: bytes, encoding: str) -> str:
    try:
        data = decompress(body, {b"content-encoding": encoding.encode()}, limit=MAX_BYTES)
    except TooLargeError:
        raise FetchError("too_large", str(MAX_BYTES >> 20)) from None
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
