"""An ASGI application on a real loopback port, in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def serving(application: Any) -> Iterator[int]:
    """Serves while the block runs; gives the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="error", access_log=False, lifespan="off", ws="none")
    server = _Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
