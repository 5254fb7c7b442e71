"""The stand-in engine in this process: what it was asked can be looked at, and what it does be changed while it runs."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_server import Engine, Handler, Server, arguments
from tests.fakes.serving_metrics import Metrics


@dataclass
class Watched:
    """`key`: the API key that it asks for. `status`: answers that instead, with a way elsewhere."""

    options: Namespace
    engine: Engine
    port: int = 0
    key: str = ""
    status: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    most_running: int = 0


class WatchedHandler(Handler):
    watched: Watched

    def do_GET(self) -> None:
        self.watched.paths.append(self.path)
        # As with vLLM, health is open to everybody.
        if self.path == "/health" or self._may_ask():
            super().do_GET()

    def do_POST(self) -> None:
        self.watched.paths.append(self.path)
        if not self._may_ask():
            return
        if self.watched.status != 200:
            self.send_response(self.watched.status)
            self.send_header("Location", "http://192.0.2.1/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_POST()

    def _may_ask(self) -> bool:
        """Else the body is left unread, and the connection with it."""
        self.close_connection = self.close_connection or self.watched.status != 200
        wanted = f"Bearer {self.watched.key}" if self.watched.key else None
        if wanted is None or self.headers.get("Authorization") == wanted:
            return True
        self.close_connection = True
        self._answer(401, {"error": {"message": "Unauthorized"}})
        return False

    def _complete(self, asked: dict[str, Any]) -> None:
        self.watched.bodies.append(asked)
        super()._complete(asked)

    def _stream(self, words: Iterator[str], usage: dict[str, int], *, is_chat: bool) -> None:
        super()._stream(self._counted(words), usage, is_chat=is_chat)

    def _counted(self, words: Iterator[str]) -> Iterator[str]:
        for word in words:
            self.watched.most_running = max(self.watched.most_running, self.watched.engine.metrics.running)
            yield word


@contextmanager
def engine(*knobs: str) -> Iterator[Watched]:
    """On a port of loopback that is free; `knobs` as the program takes them."""
    options = arguments(["--port", "0", *knobs])
    watched = Watched(options, Engine(options, Metrics(options.model)))
    handler = type("Bound", (WatchedHandler,), {"engine": watched.engine, "watched": watched})
    server = Server(("127.0.0.1", 0), handler)
    watched.port = server.server_address[1]
    watched.engine.is_loaded.set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield watched
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
