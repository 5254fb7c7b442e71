"""A real moto server: EC2 and STS over HTTP, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

ADDRESS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")


@contextmanager
def moto_server() -> Iterator[str]:
    """The address of a server that is ready; it ends with the block."""
    environment = {
        **os.environ,
        "PYTHONWARNINGS": "ignore",
        "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
        # Amazon's own images are thousands, and are made anew with each reset.
        "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        address = address_of(server)
        # It logs every request: a full pipe would stop it.
        Thread(target=server.communicate, daemon=True).start()
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)


def address_of(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        if found := ADDRESS.search(line):
            return found[1]
    raise AssertionError("moto did not start:\n" + "".join(said))


def reset(address: str) -> None:
    request = urllib.request.Request(f"{address}/moto-api/reset", method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert json.load(answer) == {"status": "ok"}
