"""HTTPS to one dashboard: keep-alive, proxies of the environment, a custom CA, no redirects."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import os
import ssl
from urllib.parse import SplitResult, unquote, urlsplit

from agent import __version__

_TIMEOUT_SECONDS = 15.0
_MOST_ANSWER_BYTES = 1 << 20
_GZIP_LEVEL = 6
_HANG_UPS = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
_BYTES = "application/octet-stream"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class TransportError(Exception):
    """No answer came: no route, refused, timed out, a certificate that does not fit, a broken answer."""


class HungUpError(TransportError):
    """The server closed the connection instead of answering."""


class AddressError(ValueError):
    """An address that no token may be sent to; the message says why and what to do."""


class Answer:
    """``body`` is an empty dict where the server (or a proxy before it) sent no JSON object."""

    __slots__ = ("body", "retry_after_seconds", "status")

    def __init__(self, status: int, body: dict[str, object], retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.body = body
        self.retry_after_seconds = retry_after_seconds


class _Request:
    __slots__ = ("body", "headers", "method", "most_bytes", "path")

    def __init__(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], most_bytes: int = _MOST_ANSWER_BYTES
    ) -> None:
        self.method = method
        self.path = path
        self.body = body
        self.headers = headers
        self.most_bytes = most_bytes


class Dashboard:
    """One connection, reused; not safe for use by two threads."""

    def __init__(self, url: str, token: str, *, ca_file: str | None = None, allow_http: bool = False) -> None:
        self._base = checked_address(url, allow_http=allow_http)
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}
        self._ca_file = ca_file
        self._connection: http.client.HTTPConnection | None = None
        self._prefix = ""
        self._proxy_headers: dict[str, str] = {}

    def post(self, path: str, document: bytes, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> Answer:
        """Send JSON bytes. Raises TransportError."""
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        request = _Request("POST", path, gzip.compress(document, _GZIP_LEVEL), headers)
        answer, raw = self._exchange(request, timeout_seconds)
        answer.body = _json_object(raw)
        return answer

    def post_bytes(self, path: str, data: bytes, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> Answer:
        """Send bytes as they are. Raises TransportError."""
        answer, _ = self._exchange(_Request("POST", path, data, {"Content-Type": _BYTES}), timeout_seconds)
        return answer

    def get(self, path: str, *, most_bytes: int, timeout_seconds: float = _TIMEOUT_SECONDS) -> tuple[Answer, bytes]:
        """Raises TransportError, also for an answer larger than ``most_bytes``."""
        return self._exchange(_Request("GET", path, None, {}, most_bytes), timeout_seconds)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, request: _Request, timeout: float) -> tuple[Answer, bytes]:
        reused = self._connection is not None
        try:
            return self._once(request, timeout)
        except HungUpError:
            if not reused:
                raise
        # The server closed a connection that had been idle. Samples have keys, so sending them twice is safe: ask again
        return self._once(request, timeout)

    def _once(self, request: _Request, timeout: float) -> tuple[Answer, bytes]:
        try:
            connection = self._connected(timeout)
            headers = {**self._authorization, "User-Agent": f"rackrent-agent/{__version__}"}
            path = self._prefix + self._base.path.rstrip("/") + request.path
            connection.request(
                request.method, path, request.body, {**headers, **self._proxy_headers, **request.headers}
            )
            response = connection.getresponse()
            raw = response.read(request.most_bytes + 1)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            kind = HungUpError if isinstance(error, _HANG_UPS) else TransportError
            raise kind(f"{self._base.netloc}: {type(error).__name__}: {error}") from error
        if len(raw) > request.most_bytes:
            self.close()
            raise TransportError(f"{self._base.netloc} answered more than {request.most_bytes} bytes")
        return Answer(response.status, {}, _seconds(response.getheader("Retry-After"))), raw

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._new_connection(timeout)
        self._connection.timeout = timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        return self._connection

    def _new_connection(self, timeout: float) -> http.client.HTTPConnection:
        proxy = proxy_for(self._base)
        if self._base.scheme == "http":
            if proxy is not None:
                self._prefix, self._proxy_headers = f"http://{self._base.netloc}", _proxy_credentials(proxy)
            return http.client.HTTPConnection(*_host_and_port(proxy or self._base), timeout=timeout)
        context = tls_context(self._ca_file)
        if proxy is None:
            return http.client.HTTPSConnection(*_host_and_port(self._base), timeout=timeout, context=context)
        connection = http.client.HTTPSConnection(*_host_and_port(proxy), timeout=timeout, context=context)
        connection.set_tunnel(*_host_and_port(self._base), headers=_proxy_credentials(proxy))
        return connection


def checked_address(url: str, *, allow_http: bool) -> SplitResult:
    """The dashboard's address, or AddressError: a token goes over plain HTTP only inside one machine, unless asked for."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AddressError(f"{url!r} is no address of a dashboard: give one like https://rackrent.example.org")
    if parts.username or parts.query or parts.fragment:
        raise AddressError(
            "the dashboard's address holds a user, a query or a fragment: give scheme, host, port and path only"
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
        raise AddressError(
            f"{url} would send the token unencrypted: use https, or add --allow-http on a network you trust"
        )
    return parts


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """With ``ca_file`` only that authority is trusted: the dashboard has one address, and it is known who signed it."""
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def proxy_for(address: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for this address. Loaded only where one is set: it costs 2 MiB."""
    if address.hostname in _LOOPBACK or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    chosen = getproxies().get(address.scheme)
    if not chosen or proxy_bypass(address.netloc):
        return None
    return urlsplit(chosen if "://" in chosen else f"http://{chosen}")


def _host_and_port(address: SplitResult) -> tuple[str, int]:
    return address.hostname or "", address.port or (443 if address.scheme == "https" else 80)


def _proxy_credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _seconds(header: str | None) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return max(0.0, float(header or ""))
    return None


def _json_object(raw: bytes) -> dict[str, object]:
    try:
        document = json.loads(raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
