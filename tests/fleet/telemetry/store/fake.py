"""A store that notes what it was asked and answers as it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EMPTY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}).encode()


@dataclass
class FakeStore:
    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = EMPTY
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def fake_store() -> Iterator[FakeStore]:
    store = FakeStore()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            store.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            is_query = "query" in self.path
            self.send_response(200 if is_query and store.status == 204 else store.status)
            for name, value in store.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(store.answer) if is_query else 0))
            self.end_headers()
            if is_query:
                self.wfile.write(store.answer)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent_store() -> Iterator[tuple[str, Callable[[], int]]]:
    """A store that takes connections and never says a word: its address, and how many connections there were."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        def connections() -> int:
            while True:
                try:
                    taken.append(listener.accept()[0])
                except BlockingIOError:
                    return len(taken)

        yield f"http://127.0.0.1:{listener.getsockname()[1]}", connections
    for one in taken:
        one.close()
