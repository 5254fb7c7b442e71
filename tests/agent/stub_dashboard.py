"""A loopback server that speaks the agent protocol: remembers what it was sent, answers what a test told it to."""

from __future__ import annotations

import gzip
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONFIG = {"interval_seconds": 1, "report_seconds": 5, "paused": False, "agent_version": "0.1.0"}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tests kill agents in the middle of a request; whatever else goes wrong here is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StubDashboard:
    """``answers`` is a queue of (status, body, headers) for the samples path; when it is empty, 200.

    ``idle_seconds``: after so long without a request a connection is closed, as real servers do.
    """

    def __init__(self, certificate: tuple[Path, Path] | None = None, idle_seconds: float | None = None) -> None:
        self.idle_seconds = idle_seconds
        self.samples: list[dict[str, Any]] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.enrolments: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.paths: list[str] = []
        self.connections = 0
        self.archive = b""
        self.answers: list[tuple[int, dict[str, Any], dict[str, str]]] = []
        self.enrol_answer: tuple[int, dict[str, Any]] = (201, {"instance_id": 17, "token": "rra_own", "config": CONFIG})
        self.config: dict[str, Any] = dict(CONFIG)
        self.arrived = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def wait_for(self, condition: Any, seconds: float = 20.0) -> None:
        """Until something that arrived makes ``condition()`` true; fails the test otherwise."""
        with self.arrived:
            assert self.arrived.wait_for(condition, seconds), "what was waited for never arrived"

    def receive(self, path: str, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        with self.arrived:
            self.tokens.append(token)
            self.paths.append(path)
            answer = self._answer(path, body)
            self.arrived.notify_all()
        return answer

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        if path.endswith("/enrol"):
            self.enrolments.append(body)
            return (*self.enrol_answer, {})
        if path.endswith("/heartbeat"):
            self.heartbeats.append(body)
            return 200, {"config": self.config}, {}
        if self.answers:
            return self.answers.pop(0)
        self.samples.append(body)
        return 200, {"accepted": {}, "dropped": {}, "config": self.config}, {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = stub.idle_seconds

            def setup(self) -> None:
                stub.connections += 1
                super().setup()

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                text = gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw
                token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
                status, body, headers = stub.receive(self.path, token, json.loads(text))
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                with stub.arrived:
                    stub.paths.append(self.path)
                found = self.path.endswith("/agent/rackrent-agent.pyz") and stub.archive
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(stub.archive)))
                self.end_headers()
                self.wfile.write(stub.archive)

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        return Handler
