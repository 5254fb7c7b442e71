"""Provider and agents in one process: they serve and report until SIGTERM, and keep what they must."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command

from fleet.sandbox.agents import Crew
from fleet.sandbox.client import IngestClient
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.rentals import Rental
from fleet.sandbox.server import PortTakenError, listen, serve
from tests.fleet.sandbox.stub_ingest import StubIngest

BORN_AT = 1_796_000_000.0


class OpenOffice:
    async def is_listed(self, machine_id: str) -> bool:
        return True

    async def enrolment_token(self, *, refused: str = "") -> str:
        return "rre_good"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "provider.json", lambda: BORN_AT)


async def test_it_serves_and_reports_until_sigterm(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.sandbox.schedule.HISTORY_SECONDS", 600)
    monkeypatch.setattr("fleet.sandbox.agents.HISTORY_SECONDS", 600)
    stub, said = StubIngest(), list[str]()
    async with httpx.AsyncClient(transport=httpx.MockTransport(stub)) as http:
        crew = Crew(desk, IngestClient("http://dashboard", http), OpenOffice(), tmp_path / "agents.json", said.append)
        all_report = asyncio.Event()

        def say(text: str) -> None:
            said.append(text)
            all_report.set()

        crew.say = say
        with listen(0) as listening:
            port = listening.getsockname()[1]
            running = asyncio.create_task(serve(listening, SandboxAPI(desk), crew))
            await asyncio.wait_for(all_report.wait(), 60)
            async with httpx.AsyncClient(trust_env=False) as browser:
                headers = {"Authorization": f"Bearer {desk.read_key}"}
                answer = await browser.get(f"http://127.0.0.1:{port}/v1/instances", headers=headers)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(running, 60)
    assert answer.json()["total"] == 24
    assert said == ["21 machines are up and their history is sent"]
    assert len(stub.enrolled) == 21
    assert len(json.loads((tmp_path / "agents.json").read_text())) == 24


async def test_a_machine_that_is_ordered_gets_an_agent_and_a_terminated_one_loses_it(
    desk: Desk, tmp_path: Path
) -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(StubIngest())) as http:
        crew = Crew(desk, IngestClient("http://dashboard", http), OpenOffice(), tmp_path / "agents.json", print)
        tasks: dict[str, asyncio.Task[None]] = {}
        await crew._match(tasks)
        made = desk.create({"offer": "sb.l4x1"}, "")
        await crew._match(tasks)
        assert made.id in tasks
        desk.change(made.id, Rental.terminate)
        desk.clock = lambda: BORN_AT + 7200
        await crew._match(tasks)
        assert made.id not in tasks
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def test_a_defect_of_one_agent_ends_the_process(desk: Desk, tmp_path: Path) -> None:
    """A sandbox that looks alive with half of its agents dead would be a lie."""

    class BrokenOffice(OpenOffice):
        async def is_listed(self, machine_id: str) -> bool:
            raise ZeroDivisionError

    async with httpx.AsyncClient(transport=httpx.MockTransport(StubIngest())) as http:
        crew = Crew(desk, IngestClient("http://dashboard", http), BrokenOffice(), tmp_path / "agents.json", print)
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(crew.run(), 30)


def test_a_taken_port_is_said_with_a_remedy() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(PortTakenError, match="SANDBOX_PORT to a free port"),
    ):
        listen(other.getsockname()[1])


def test_it_is_off_beside_a_database_of_ones_own() -> None:
    with pytest.raises(CommandError, match="The sandbox is off"):
        call_command("sandbox")
