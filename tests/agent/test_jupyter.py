"""What Jupyter says of its kernels: asked on this machine only, with the server's own token."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent.host.jupyter import activity, servers

KERNELS = [
    {"id": "a", "execution_state": "busy", "last_activity": "2026-11-30T05:59:58.123456Z"},
    {"id": "b", "execution_state": "idle", "last_activity": "2026-11-30T04:00:00.000000Z"},
]


class Jupyter(HTTPServer):
    """Answers /lab/api/kernels to whoever has the token."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Jupyter

    def do_GET(self) -> None:
        self.server.seen.append(f"{self.path} {self.headers.get('Authorization')}")
        right = self.headers.get("Authorization") == "token s3cret" and self.path == "/lab/api/kernels"
        data = json.dumps(KERNELS if right else {"message": "Forbidden"}).encode()
        self.send_response(200 if right else 403)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def jupyter() -> Iterator[Jupyter]:
    server = Jupyter()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def runtime_file(machine: Path, **changes: object) -> None:
    directory = machine / "root/.local/share/jupyter/runtime"
    directory.mkdir(parents=True, exist_ok=True)
    (machine / f"proc/{os.getpid()}").mkdir(exist_ok=True)
    said = {"base_url": "/lab/", "pid": os.getpid(), "token": "s3cret", "url": "http://localhost:8888/lab/", **changes}
    (directory / "jpserver-1.json").write_text(json.dumps(said))


def test_kernels_busy_ones_and_last_activity(machine: Path, jupyter: Jupyter) -> None:
    runtime_file(machine, port=jupyter.server_port)
    assert activity(f"{machine}/") == {
        "jupyter_kernels": 2,
        "jupyter_busy_kernels": 1,
        "jupyter_last_activity_at": 1796018398.0,
    }


def test_a_server_that_refuses_is_unknown_not_idle(machine: Path, jupyter: Jupyter) -> None:
    runtime_file(machine, port=jupyter.server_port, token="wrong")
    assert activity(f"{machine}/") == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://198.51.100.7:8888/"},
        {"url": "https://localhost:8888/"},
        {"pid": 999999999},
        {"port": 99999},
        {"port": "many"},
        {"url": None},
    ],
)
def test_a_file_that_points_elsewhere_or_is_stale_is_not_followed(machine: Path, changes: dict[str, object]) -> None:
    runtime_file(machine, **{"port": 8888, **changes})
    assert list(servers(f"{machine}/")) == []
