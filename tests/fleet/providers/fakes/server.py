"""The loopback side of a fake: threads, sockets, and answers that never come or break off."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """`path` is decoded and has no slash at its end."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Message
    body: bytes

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body) if self.body.strip() else None


@dataclass(frozen=True)
class Answer:
    """`sent`: how many bytes of the body leave before the line breaks; None = all."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None


def told(content: Any, status: int = 200, *, media: str = "application/json", **headers: str) -> Answer:
    """A JSON answer; None has no body."""
    body = b"" if content is None else json.dumps(content).encode()
    return Answer(status, body, {"Content-Type": media, **headers})


class Loopback:
    """`answer` is called in a thread of its own for each request; None closes the line without a word."""

    def __init__(self, answer: Callable[[Request], Answer | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def serve(self) -> None:
                reply = answer(read(self))
                if reply is not None:
                    write(self, reply)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def read(handler: BaseHTTPRequestHandler) -> Request:
    address = urlsplit(handler.path)
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    path = unquote(address.path).rstrip("/") or "/"
    return Request(handler.command, path, dict(parse_qsl(address.query)), handler.headers, body)


def write(handler: BaseHTTPRequestHandler, reply: Answer) -> None:
    try:
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body[: reply.sent])
    except ConnectionError:
        # The caller lost patience, as the test wanted.
        pass
