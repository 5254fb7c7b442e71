"""The one guard for every address that a person may type: exporters to scrape, webhooks, gateways, remote stores.

A team's admin must not reach the installation's own network through Rackrent. Loopback, link-local, private, metadata and
other special addresses are refused unless the installation's operator has allowed their network. A name is resolved once and
the connection goes to the address that was checked, so an answer that changes in between changes nothing. Redirects are not followed.

No Django here: the operator's networks are an argument.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SCHEMES = {"http": 80, "https": 443}
# The metadata services of the clouds answer here; an operator's network around one of them does not open it.
METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
)


REASONS = {
    "no_url": "This is no web address. Write it like https://host.example:9400/metrics.",
    "scheme": "Only http:// and https:// addresses with a host name are possible.",
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
        if parsed.userinfo:
            raise RefusedAddressError("login")
        if literal := _literal(parsed.host):
            self.check_address(literal)
        return parsed

    def check_address(self, address: Address) -> None:
        """Raises RefusedAddressError for an address that a team may not reach."""
        real = _unwrapped(address)
        if real in METADATA:
            raise RefusedAddressError("metadata", str(real))
        if real.is_global and not real.is_multicast:
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
        except OSError:
            found = []
        return self.choose(host, [ipaddress.ip_address(entry[4][0]) for entry in found])


class GuardedTransport(httpx.AsyncHTTPTransport):
    """Connects to the address that the guard chose, and to no other; certificates are checked for the name that was typed."""

    def __init__(self, guard: Guard, *, limits: httpx.Limits | None = None) -> None:
        super().__init__(trust_env=False, limits=limits or httpx.Limits(max_connections=None))
        self.guard = guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = self.guard.check_url(str(request.url))
        return await super().handle_async_request(_pinned(request, await self.guard.resolve(url.host, _port(url))))


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


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
