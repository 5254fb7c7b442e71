"""The real agent against the real ingest: installed by the served script, over a socket, into PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from asgiref.sync import sync_to_async
from django.db import connections

from agent import __version__
from fleet.inventory.models import GPU, Instance
from fleet.teams.audit import Actor
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.ingest.app import Ingest
from fleet.telemetry.models import Agent, GpuLatest, GpuSample, HostLatest, HostSample, MachineEvent
from tests.fakes.nvml.compiled import CompiledNvml
from tests.programs import needs

pytestmark = pytest.mark.django_db(transaction=True)

Message = MutableMapping[str, Any]


class Served:
    """Ingest on a free port of loopback, in a thread with a loop of its own."""

    def __init__(self) -> None:
        self._ingest = Ingest()
        self._server = uvicorn.Server(
            uvicorn.Config(self._application, host="127.0.0.1", port=0, interface="asgi3", log_level="error")
        )
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> str:
        self._thread.start()
        wait_until(lambda: self._server.started)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)

    async def _application(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "lifespan":
            await self._ingest(scope, receive, send)
            return
        await receive()
        await self._ingest.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._ingest.stop()
        # Django's connections in this loop's threads; the test database could not be dropped while they are open
        await sync_to_async(connections.close_all)()
        await send({"type": "lifespan.shutdown.complete"})


def wait_until(condition: Callable[[], object], seconds: float = 40.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "what was waited for never came"
        time.sleep(0.1)


@pytest.fixture
def address(settings: Any) -> Iterator[str]:
    with Served() as url:
        settings.PUBLIC_URL = url
        yield url


class Machine:
    """A rented machine: a directory to install into, and GPUs."""

    def __init__(self, directory: Path, profile: str) -> None:
        self.prefix = directory / "machine"
        self.nvml = CompiledNvml(directory, profile)
        self.environment = {
            name: value for name, value in self.nvml.environment.items() if not name.startswith("RACKRENT")
        }

    def install(self, url: str, *options: str) -> subprocess.CompletedProcess[str]:
        """The documented line, and a prefix."""
        line = f'curl -fsSL {url}/agent/install.sh | sh -s -- --prefix {self.prefix} "$@"'
        words = ["sh", "-c", line, "install", *options]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def stop(self) -> None:
        pid_file = self.prefix / "state/agent.pid"
        if pid_file.exists():
            pid = int(pid_file.read_text())
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not Path(f"/proc/{pid}").exists())

    @property
    def log(self) -> str:
        return (self.prefix / "state/agent.log").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    needs("curl")
    one = Machine(tmp_path, "h100x8")
    yield one
    one.stop()


@pytest.fixture
def token(acme, alice) -> str:
    _, secret = create_enrolment_token(actor=Actor(alice, "alice", "page"), team=acme, max_uses=3)
    return str(secret.secret)


def test_one_line_brings_a_machine_and_its_gpus_onto_the_page(address: str, machine: Machine, token: str, acme) -> None:
    installed = machine.install(address, "--token", token)
    assert installed.returncode == 0, installed.stderr
    wait_until(lambda: GpuSample.objects.filter(sm_activity__isnull=False).count() >= 16)

    instance = Instance.objects.get(team=acme)
    assert sorted(GPU.objects.filter(instance=instance).values_list("uuid", flat=True)) == sorted(machine.nvml.uuids)
    busy = GpuLatest.objects.get(gpu__uuid=machine.nvml.uuids[0])
    assert busy.gpu.pci_bus_id == "00000000:19:00.0"
    assert (busy.utilization_percent, busy.memory_used_bytes) == (100, 20780679168)
    assert busy.power_watts == pytest.approx(631.95)
    assert busy.sm_activity == pytest.approx(0.965)
    assert busy.memory_total_bytes == 85520809984
    idle = GpuLatest.objects.get(gpu__uuid=machine.nvml.uuids[7])
    assert (idle.utilization_percent, idle.sm_activity, idle.process_count) == (0, 0, 0)
    host = HostLatest.objects.get(instance=instance)
    assert (host.memory_total_bytes or 0) > 0
    assert HostSample.objects.filter(instance=instance, cpu_percent__isnull=False).exists()
    assert MachineEvent.objects.filter(instance=instance, kind="agent_started").count() == 1

    machine.nvml.control(f"xid 79 {machine.nvml.uuids[3]}")
    wait_until(lambda: MachineEvent.objects.filter(kind="xid", code=79, gpu__uuid=machine.nvml.uuids[3]).exists())

    reporting = Agent.objects.get(instance=instance)
    assert reporting.version == __version__
    wait_until(lambda: Agent.objects.get(pk=reporting.pk).nvml_state == "ok")
    assert Agent.objects.get(pk=reporting.pk).dropped_values == {}, "the agent sends nothing that ingest must drop"


def test_installing_again_changes_no_machine(address: str, machine: Machine, token: str) -> None:
    for options in (("--token", token, "--no-start"), ("--no-start",), ("--token", token, "--no-start")):
        done = machine.install(address, *options)
        assert done.returncode == 0, done.stderr
    assert Instance.objects.count() == 1
    assert Agent.objects.count() == 1


def test_a_token_that_is_not_known_is_explained(address: str, machine: Machine) -> None:
    done = machine.install(address, "--token", "rre_made_up")
    assert done.returncode != 0
    assert "401" in done.stderr
    assert "make a new one" in done.stderr.lower()
    assert Instance.objects.count() == 0


def test_a_machine_paused_in_the_dashboard_lets_go_of_its_gpus(address: str, machine: Machine, token: str) -> None:
    assert machine.install(address, "--token", token, "--no-start").returncode == 0
    Agent.objects.update(paused=True)
    assert machine.install(address).returncode == 0
    wait_until(lambda: Agent.objects.get().nvml_state == "paused")
    newest = GpuSample.objects.count()
    assert newest <= 8, "at most the one sample from before the first answer"
