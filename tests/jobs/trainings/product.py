"""The processes of an installation that run jobs, as it starts them, on the tests' database; killed as a power cut would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from django.conf import settings

from config.runtime import programs
from fleet.teams.models import User
from tests.e2e.chromium import wait_for_server
from tests.e2e.conftest import ROOT, free_port, on_the_tests_database, session_cookie


class Product:
    """Its web process answers at `url`."""

    def __init__(self, home: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.environment = {
            **os.environ,
            **on_the_tests_database(),
            "ALLOWED_HOSTS": "127.0.0.1",
            "ALLOWED_NETWORKS": ",".join(settings.ALLOWED_NETWORKS),
        }
        web = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--log-level", "warning"]
        workers = (programs.worker(), programs.outside_worker(), programs.beat(home))
        self.processes = [self._start([*web, "--port", self.url.rsplit(":", 1)[1]])]
        self.processes += [self._start(program.command, program.environment) for program in workers]

    def _start(self, command: Sequence[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """With a process group of its own: workers have children, and all of them die at once."""
        environment = {**self.environment, **(more or {})}
        return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)

    def wait(self) -> None:
        wait_for_server(self.url, self.processes[0])

    def page(self, user: User, path: str) -> str:
        cookie = session_cookie(user, self.url)
        answer = httpx.get(self.url + path, cookies={cookie["name"]: cookie["value"]}, timeout=30)
        assert answer.status_code == 200
        return answer.text

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@contextmanager
def running(home: Path) -> Iterator[Product]:
    home.mkdir(exist_ok=True)
    with ExitStack() as stack:
        product = Product(home)
        stack.callback(product.kill)
        product.wait()
        yield product
