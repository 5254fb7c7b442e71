"""A process that is called as vLLM is and answers with pages whose counters go on: what the agent finds and reads."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Each page is shown for some seconds from the first question on, however often it is asked for; the last one stays.
_PROGRAM = """
import http.server, sys, time

pages = sys.stdin.read().split("---")
asked = []

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(time.monotonic())
        page = pages[min(int((asked[-1] - asked[0]) / 5), len(pages) - 1)]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""
_START_SECONDS = 10.0


@contextmanager
def running_engine(directory: Path, pages: Sequence[str]) -> Iterator[int]:
    """Its port on loopback."""
    program = directory / "vllm"
    program.write_text(_PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = [sys.executable, str(program), "serve", "org/llama", "--port", str(port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            process.stdin.write("---".join(pages))
            process.stdin.close()
            _wait_for(port)
            yield port
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < until, "the engine did not start"
        time.sleep(0.1)
