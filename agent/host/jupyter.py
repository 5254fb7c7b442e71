"""What Jupyter servers on this machine say of their kernels, where their files may be read.

A server writes its address and token into a file that only its user (and root) can read. The token is used for one question to
the same machine and goes nowhere else.
"""

from __future__ import annotations

import calendar
import glob
import http.client
import json
import os
import time
from urllib.parse import urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNTIME_DIRECTORIES = ("root/.local/share/jupyter/runtime", "home/*/.local/share/jupyter/runtime")
_FILES = ("jpserver-*.json", "nbserver-*.json")
_LOOPBACK = ("127.0.0.1", "localhost", "0.0.0.0", "::", "::1", "")  # noqa: S104  # compared with, not bound to
_TIMEOUT_SECONDS = 2.0
_MOST_ANSWER_BYTES = 1 << 20
_MOST_SERVERS = 8


class Server:
    __slots__ = ("base_url", "port", "token")

    def __init__(self, port: int, base_url: str, token: str) -> None:
        self.port = port
        self.base_url = base_url
        self.token = token


def servers(root: str = "/") -> Iterator[Server]:
    """Servers whose process is alive. Anybody may write such a file: only ports of this machine are believed."""
    paths = [
        path for directory in _RUNTIME_DIRECTORIES for name in _FILES for path in glob.glob(f"{root}{directory}/{name}")
    ]
    for path in sorted(paths)[:_MOST_SERVERS]:
        try:
            with open(path, encoding="utf-8") as file:
                said = json.load(file)
            address = urlsplit(str(said["url"]))
            alive = os.path.exists(f"{root}proc/{int(said['pid'])}")
            server = Server(int(said["port"]), str(said.get("base_url", "/")), str(said.get("token", "")))
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if alive and address.scheme == "http" and (address.hostname or "") in _LOOPBACK and 0 < server.port < 65536:
            yield server


def activity(root: str = "/") -> dict[str, object]:
    """Protocol fields over all servers that answered; empty when none did."""
    kernels: list[dict[str, object]] = []
    answered = False
    for server in servers(root):
        listed = _kernels(server)
        if listed is not None:
            answered = True
            kernels.extend(listed)
    if not answered:
        return {}
    fields: dict[str, object] = {
        "jupyter_kernels": len(kernels),
        "jupyter_busy_kernels": sum(1 for kernel in kernels if kernel.get("execution_state") == "busy"),
    }
    times = [at for kernel in kernels if (at := _seconds(kernel.get("last_activity"))) is not None]
    return {**fields, "jupyter_last_activity_at": max(times)} if times else fields


def _kernels(server: Server) -> list[dict[str, object]] | None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_TIMEOUT_SECONDS)
    try:
        headers = {"Authorization": f"token {server.token}"} if server.token else {}
        connection.request("GET", server.base_url.rstrip("/") + "/api/kernels", headers=headers)
        response = connection.getresponse()
        listed = json.loads(response.read(_MOST_ANSWER_BYTES)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return [kernel for kernel in listed if isinstance(kernel, dict)] if isinstance(listed, list) else None


def _seconds(text: object) -> float | None:
    """Jupyter's ``2026-11-30T05:59:58.123456Z`` as seconds since the epoch."""
    try:
        return float(calendar.timegm(time.strptime(str(text)[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None
