"""Under which names the web process may be called."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]


def own_hosts(*, public_url: str, bind_host: str) -> list[str]:
    """The Host headers to accept where ALLOWED_HOSTS says nothing: this machine's own names, and those that were configured."""
    names = [*LOOPBACK_HOSTS, public_host(public_url)]
    if not is_loopback(bind_host):
        names += [socket.gethostname(), *([] if is_any_address(bind_host) else [bind_host])]
    return list(dict.fromkeys(name for name in names if name))


def own_url(*, bind_host: str, port: int) -> str:
    """Where other processes of this machine reach a server that listens on `bind_host`."""
    if is_any_address(bind_host):
        bind_host = "127.0.0.1"
    return f"http://{f'[{bind_host}]' if ':' in bind_host else bind_host}:{port}"


def public_host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def is_any_address(host: str) -> bool:
    """Whether listening on `host` means listening on every address of the machine."""
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
