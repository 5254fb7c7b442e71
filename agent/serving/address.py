"""Where the metrics of a serving engine are read: a page on this machine's loopback, and nowhere else."""

from __future__ import annotations

from urllib.parse import urlsplit

# Names are not resolved: what "localhost" leads to is for a hosts file to say, and that may be anything
_HOSTS = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
DEFAULT_PATH = "/metrics"


class Address:
    __slots__ = ("host", "path", "port")

    def __init__(self, port: int, path: str = DEFAULT_PATH, host: str = "127.0.0.1") -> None:
        self.host = host
        self.port = port
        self.path = path

    @property
    def key(self) -> str:
        return f"{self.host}:{self.port}{self.path}"


def parse_address(url: str) -> Address:
    """``http://127.0.0.1:8000/metrics``; without a path, /metrics. Raises ValueError saying what is wrong with it."""
    parts = urlsplit(url)
    host = _HOSTS.get(parts.hostname or "")
    if parts.scheme != "http" or host is None:
        raise ValueError(f"{url!r} is not on this machine: write http://127.0.0.1:PORT/metrics")
    if parts.username is not None or parts.query or parts.fragment or not url.isascii() or not url.isprintable():
        raise ValueError(f"{url!r} has more than a port and a path: write http://127.0.0.1:PORT/metrics")
    # Raises ValueError itself for what is no port
    return Address(parts.port or 80, parts.path.replace(" ", "%20") or DEFAULT_PATH, host)
