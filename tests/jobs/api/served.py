"""The web process's way to Django on a free port of loopback, in a thread with a loop of its own: what waits, waits on a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

import uvicorn

from config.crowd import CrowdedHandler
from jobs.api.following import WaitingRequests


class Served:
    def __init__(self) -> None:
        self.application = WaitingRequests(CrowdedHandler())
        self._server = uvicorn.Server(
            uvicorn.Config(
                self.application, host="127.0.0.1", port=0, interface="asgi3", log_level="error", lifespan="off",
                timeout_graceful_shutdown=2,
            )
        )  # fmt: skip
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "what was waited for never came"
        time.sleep(0.05)
