"""The one guard for every address that a person may type: exporters to scrape, webhooks, gateways, remote stores.

A team's admin must not reach the installation's own network through Rackrent. Loopback, link-local, private, metadata and
other special addresses are refused unless the installation's operator has allowed their network. A name is resolved once and
the connection goes to the address that was checked, so an answer that changes in between changes nothing. Redirects are not followed.
GuardedTransport is for httpx.AsyncClient; `guarded_client` gives an httpx.Client under the same guard.

No Django here: the operator's networks are an argument.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SCHEMES = {"http": 80, "https": 443}
MAX_PORT = 65_535
# The metadata services of the clouds answer here; an operator's network around one of them does not open it.
METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
)


REASONS = {
    "no_url": "This is no web address. Write it like https://host.example:9400/metrics.",
    "scheme": "Only http:// and https:// addresses with a host name are possible.",
    "port": "A port lies between 1 and 65535.",
    "login": "Leave user name and password out of the address; there are fields for them.",
    "metadata": "%(subject)s is a cloud's metadata service. It is never contacted.",
    "private": "%(subject)s lies in a private or special network. The operator of this installation can allow it in ALLOWED_NETWORKS.",
    "no_address": "The name %(subject)s has no address.",
}


class RefusedAddressError(ValueError):
    """What is wrong with the address and what to do, for the person who typed it, without a secret.

    code: a key of REASONS, for those who say it in another language; `subject` stands in it.
    """

    def __init__(self, code: str, subject: str = "") -> None:
        self.code, self.subject = code, subject
        self.reason = REASONS[code] % {"subject": subject}
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Guard:
    """allowed: networks of the installation's operator that may be reached although they are not public."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def of(cls, networks: Iterable[str]) -> Guard:
        """Networks in CIDR form. Raises ValueError naming the one that is none."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in networks))

    def check_url(self, url: str) -> httpx.URL:
        """The parsed address, when its form and a literal IP address in it are acceptable. Resolves nothing."""
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            raise RefusedAddressError("no_url") from None
        if parsed.scheme not in SCHEMES or not parsed.host:
            raise RefusedAddressError("scheme")
        if parsed.port is not None and not 0 < parsed.port <= MAX_PORT:
            raise RefusedAddressError("port")
        if parsed.userinfo:
            raise RefusedAddressError("login")
        self.check_host(parsed.host)
        return parsed

    def check_host(self, host: str) -> None:
        """Raises RefusedAddressError for a literal IP address that a team may not reach. Resolves nothing."""
        if literal := _literal(host):
            self.check_address(literal)

    def check_address(self, address: Address) -> None:
        """Raises RefusedAddressError for an address that a team may not reach."""
        real = _unwrapped(address)
        if real in METADATA or _embedded_ipv4(real) in METADATA:
            raise RefusedAddressError("metadata", str(real))
        if _is_public(real):
            return
        if not any(real in network for network in self.allowed):
            raise RefusedAddressError("private", str(real))

    def choose(self, host: str, addresses: Sequence[Address]) -> Address:
        """The address to connect to. One refused address refuses the name: a mixture is what an attack looks like."""
        if not addresses:
            raise RefusedAddressError("no_address", host[:100])
        for address in addresses:
            self.check_address(address)
        return addresses[0]

    async def resolve(self, host: str, port: int) -> Address:
        if literal := _literal(host):
            return self.choose(host, [literal])
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            found = []
        return self.choose(host, [ipaddress.ip_address(entry[4][0]) for entry in found])

    def resolve_blocking(self, host: str, port: int, *, seconds: float | None = None) -> Address:
        """`resolve` for code without an event loop. Raises httpx.ConnectTimeout when no answer came within `seconds`."""
        if literal := _literal(host):
            return self.choose(host, [literal])
        answer: Future[list[Address]] = Future()
        # A name server that does not answer keeps its thread for long, and nobody can end it: the thread must not hold up our end.
        Thread(target=_look_up, args=(host, port, answer), name="resolve", daemon=True).start()
        try:
            return self.choose(host, answer.result(seconds))
        except TimeoutError:
            raise httpx.ConnectTimeout(f"No address for {host[:100]} within {seconds:g} s.") from None


# A kept connection is found again by its address alone, and two names may share one: its certificate was checked for the first name only.
ONE_REQUEST_EACH = httpx.Limits(max_connections=None, max_keepalive_connections=0)


class GuardedTransport(httpx.AsyncHTTPTransport):
    """Connects to the address that the guard chose, and to no other; certificates are checked for the name that was typed."""

    def __init__(self, guard: Guard, *, limits: httpx.Limits | None = None) -> None:
        super().__init__(trust_env=False, limits=limits or ONE_REQUEST_EACH)
        self.guard = guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = self.guard.check_url(str(request.url))
        return await super().handle_async_request(_pinned(request, await self.guard.resolve(url.host, _port(url))))


class BlockingGuardedTransport(httpx.HTTPTransport):
    """GuardedTransport for httpx.Client. `limits` that keep connections are for clients of one host only (ONE_REQUEST_EACH)."""

    def __init__(self, guard: Guard, *, limits: httpx.Limits | None = None) -> None:
        super().__init__(trust_env=False, limits=limits or ONE_REQUEST_EACH)
        self.guard = guard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = self.guard.check_url(str(request.url))
        seconds = request.extensions.get("timeout", {}).get("connect")
        return super().handle_request(
            _pinned(request, self.guard.resolve_blocking(url.host, _port(url), seconds=seconds))
        )


def guarded_client(guard: Guard, *, timeout_seconds: float, limits: httpx.Limits | None = None) -> httpx.Client:
    """For addresses that a person typed: no redirects, no proxies of the surroundings. Requests raise RefusedAddressError."""
    transport = BlockingGuardedTransport(guard, limits=limits)
    return httpx.Client(transport=transport, timeout=timeout_seconds, follow_redirects=False, trust_env=False)


def _look_up(host: str, port: int, answer: Future[list[Address]]) -> None:
    found: list[Address] = []
    # A name that no resolver can take (too long, no IDNA) has no address either.
    with suppress(OSError, UnicodeError):
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = [ipaddress.ip_address(entry[4][0]) for entry in entries]
    answer.set_result(found)


def _pinned(request: httpx.Request, address: Address) -> httpx.Request:
    """The same request aimed at `address`; the Host header, made from the name already, and the TLS name stay."""
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )


def _port(url: httpx.URL) -> int:
    return url.port or SCHEMES[url.scheme]


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return None


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, NAT64): the network sees that one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    """Of IPv6 only what is given out as global unicast: `is_global` takes retired and translated ranges for public too."""
    handed_out = not isinstance(address, ipaddress.IPv6Address) or address in _GLOBAL_UNICAST
    return handed_out and address.is_global and not address.is_multicast


def _embedded_ipv4(address: Address) -> Address | None:
    """The IPv4 address at the end of a special IPv6 one: networks have translators of their own that send it on to that."""
    if not isinstance(address, ipaddress.IPv6Address) or address in _GLOBAL_UNICAST:
        return None
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
