"""Where a request comes from."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest


def client_ip(request: HttpRequest) -> str | None:
    """The caller's address; None where the server does not know it (a UNIX socket).

    Behind a proxy X-Forwarded-For is read from its end: each trusted proxy vouches for the entry before its own, and
    what stands before the first stranger the stranger may have made up.
    """
    address = valid_ip(request.META.get("REMOTE_ADDR", ""))
    if not settings.BEHIND_PROXY:
        return address
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    while hops and (address is None or is_trusted(address)):
        if (hop := valid_ip(hops.pop())) is None:
            break
        address = hop
    return address


def valid_ip(word: str) -> str | None:
    try:
        return str(ip_address(word.strip()))
    except ValueError:
        return None


def is_trusted(address: str) -> bool:
    return any(
        network is None or ip_address(address) in network for network in map(network_of, settings.TRUSTED_PROXIES)
    )


def network_of(word: str) -> IPv4Network | IPv6Network | None:
    """None for `*`: whoever can reach the server is a proxy."""
    return None if word == "*" else ip_network(word, strict=False)
