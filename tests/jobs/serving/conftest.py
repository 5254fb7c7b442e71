from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from jobs.book.models import Attempt, Job, JobKind, JobState, Node
from jobs.serving.due import add_servers
from jobs.serving.models import Server
from jobs.serving.run import look_at
from tests.jobs.conftest import go_on, newest

ROOT = Path(__file__).resolve().parents[3]
MODEL = "org/tiny"


def command_of(port: int, *knobs: str, engine: str = "vllm") -> str:
    words = [sys.executable, "-m", "tests.fakes.openai_server", "--port", str(port), "--engine", engine, *knobs]
    return f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.join(words)}"


@dataclass
class Served:
    """A serving job whose stand-in runs on a machine with a real sshd. Looks are taken at times that the test chooses."""

    job: Job
    port: int
    machine: object

    @property
    def attempt(self) -> Attempt:
        return newest(self.job)

    @property
    def node(self) -> Node:
        return self.attempt.nodes.get(rank=0)

    @property
    def server(self) -> Server:
        return Server.objects.select_related("node__attempt__job", "node__instance").get(node=self.node)

    def look(self, at: datetime | None = None) -> Server:
        at = at or timezone.now()
        add_servers(now=at)
        Server.objects.filter(node=self.node).update(next_at=at)
        assert look_at(server_id=self.server.pk, now=at) is not None
        return self.server

    def becomes_ready(self, at: datetime | None = None) -> Server:
        """A moment long nothing listens: looked at again, as the beat does."""
        for _look in range(100):
            server = self.look(at)
            if server.ready_at is not None:
                return server
            at = at + timedelta(seconds=1) if at else None
        raise AssertionError(f"not ready: {server.code} {server.detail}")

    def ask(self, *, max_tokens: int = 4, timeout: float = 30.0, prompt: str = "a few words of a prompt") -> int:
        asked = {"model": MODEL, "prompt": prompt, "max_tokens": max_tokens}
        return httpx.post(f"http://127.0.0.1:{self.port}/v1/completions", json=asked, timeout=timeout).status_code


@pytest.fixture
def serve(machine_of, begin) -> Callable[..., Served]:
    """serve("--leak-bytes", "1000", engine="tgi", restart="exit") runs until its command has started."""

    def make(*knobs: str, engine: str = "vllm", command: str = "", name: str = "serve-01", **serving: object) -> Served:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        machine, server = machine_of(name)
        order = {"port": port, "engine": engine, **serving}
        job = begin(
            command or command_of(port, *knobs, engine=engine),
            machine,
            name="chat",
            kind=JobKind.SERVING,
            serving=order,
        )
        go_on(job, until=lambda job: job.state == JobState.RUNNING and newest(job).nodes.get().started_at is not None)
        return Served(job, port, server)

    return make
