"""What a simulated agent does step by step, against a server that answers as the test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from fleet.sandbox.agents import Agent, Crew
from fleet.sandbox.client import IngestClient, TokenRefusedError, TryLaterError
from fleet.sandbox.desk import Desk
from tests.fleet.sandbox.stub_ingest import StubIngest, busy

ONE_GPU, LOST, SILENT, STOPPED = "sb-9e0b77", "sb-11e5b4", "sb-11e5c7", "sb-e5a810"
DAY = 86400


class Clock:
    def __init__(self) -> None:
        self.now = 1_796_000_000.0

    def __call__(self) -> float:
        return self.now


class OfficeDouble:
    def __init__(self) -> None:
        self.listed = True
        self.token = "rre_good"
        self.refused: list[str] = []

    async def is_listed(self, machine_id: str) -> bool:
        return self.listed

    async def enrolment_token(self, *, refused: str = "") -> str:
        if refused:
            self.refused.append(refused)
            self.token = "rre_good"
        return self.token


@pytest.fixture
def server() -> StubIngest:
    return StubIngest()


@pytest.fixture
def office() -> OfficeDouble:
    return OfficeDouble()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def crew(tmp_path: Path, server: StubIngest, office: OfficeDouble, clock: Clock) -> AsyncIterator[Crew]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(server)) as http:
        client = IngestClient("http://dashboard", http)
        desk = Desk(tmp_path / "provider.json", clock)
        yield Crew(desk, client, office, tmp_path / "agents.json", lambda text: None)


async def catch_up(agent: Agent) -> None:
    while await agent.step() == 0.0:
        pass


def moments(server: StubIngest, uuid: str) -> list[float]:
    return sorted(at for gpu, at in server.samples if gpu == uuid)


async def test_it_waits_until_its_machine_is_listed(crew: Crew, server: StubIngest, office: OfficeDouble) -> None:
    office.listed = False
    assert await Agent(crew, ONE_GPU).step() > 0
    assert server.enrolled == []


async def test_it_enrols_by_the_id_of_the_listing(crew: Crew, server: StubIngest) -> None:
    await Agent(crew, ONE_GPU).step()
    assert server.enrolled[0]["provider_ids"] == {"sandbox_instance_id": ONE_GPU}
    assert len(server.enrolled[0]["gpus"]) == 1


async def test_it_first_shows_how_the_machine_is_now(crew: Crew, server: StubIngest, clock: Clock) -> None:
    await Agent(crew, ONE_GPU).step()
    (first,) = server.batches
    times = [sample["at"] for sample in first["samples"]]
    assert clock.now - times[-1] < 5
    assert times[0] < clock.now - 3.9 * 3600
    assert max(later - earlier for earlier, later in pairwise(times)) < 120
    assert "inventory" in first


async def test_what_is_new_does_not_wait_for_the_history(crew: Crew, server: StubIngest, clock: Clock) -> None:
    agent = Agent(crew, ONE_GPU)
    await agent.step()
    while not crew.history.locked():
        await crew.history.acquire()
    for _ in range(3):
        clock.now += 10
        while await agent.step() == 0.0:
            pass
        assert clock.now - server.batches[-1]["samples"][-1]["at"] < 10
    assert len(server.batches) == 4


async def test_the_day_has_no_gap_whatever_came_first(crew: Crew, server: StubIngest, clock: Clock) -> None:
    agent = Agent(crew, ONE_GPU)
    for _ in range(5):
        await agent.step()
    crew.save()
    clock.now += 3000
    again = Crew(crew.desk, crew.client, crew.office, crew.path, crew.say)
    again.remember()
    await catch_up(Agent(again, ONE_GPU))
    sent = moments(server, server.enrolled[0]["gpus"][0]["uuid"])
    assert {round(b - a, 3) for a, b in pairwise(sent) if a > clock.now - 3600} == {5.0}
    assert max(b - a for a, b in pairwise(sent)) < 121


async def test_it_first_sends_the_day_before_then_reports(crew: Crew, server: StubIngest, clock: Clock) -> None:
    agent = Agent(crew, ONE_GPU)
    await catch_up(agent)
    uuid = server.enrolled[0]["gpus"][0]["uuid"]
    sent = moments(server, uuid)
    assert clock.now - DAY < sent[0] < clock.now - DAY + 130
    assert clock.now - sent[-1] < 5
    assert "inventory" in server.batches[0]
    assert "inventory" not in server.batches[-1]
    clock.now += 10
    await agent.step()
    assert len(moments(server, uuid)) == len(sent) + 2


async def test_no_batch_is_larger_than_the_protocol_allows(crew: Crew, server: StubIngest) -> None:
    await catch_up(Agent(crew, ONE_GPU))
    assert max(len(batch["samples"]) for batch in server.batches) <= 720


async def test_after_an_outage_it_goes_on_from_the_last_acknowledged_sample(
    crew: Crew, server: StubIngest, clock: Clock
) -> None:
    agent = Agent(crew, ONE_GPU)
    await catch_up(agent)
    uuid = server.enrolled[0]["gpus"][0]["uuid"]
    server.script = lambda request: busy()
    clock.now += 60
    with pytest.raises(TryLaterError) as later:
        await agent.step()
    assert later.value.wait_seconds == 3
    server.script = lambda request: None
    clock.now += 60
    await catch_up(agent)
    recent = [at for at in moments(server, uuid) if at > clock.now - 150]
    assert {round(b - a, 3) for a, b in pairwise(recent)} == {5.0}


async def test_a_restart_of_the_process_sends_nothing_twice(crew: Crew, server: StubIngest, clock: Clock) -> None:
    await catch_up(Agent(crew, ONE_GPU))
    crew.save()
    again = Crew(crew.desk, crew.client, crew.office, crew.path, crew.say)
    again.remember()
    posted, stored = server.posted, len(server.samples)
    clock.now += 10
    await catch_up(Agent(again, ONE_GPU))
    assert len(server.enrolled) == 1
    assert (server.posted, len(server.samples)) == (posted + 2, stored + 2)
    assert crew.path.stat().st_mode & 0o777 == 0o600


async def test_a_refused_token_leads_to_enrolling_again_with_the_whole_day(crew: Crew, server: StubIngest) -> None:
    agent = Agent(crew, ONE_GPU)
    await catch_up(agent)
    server.tokens.clear()
    crew.desk.clock.now += 10  # type: ignore[attr-defined]
    with pytest.raises(TokenRefusedError):
        await agent.step()
    agent._forget_token()
    server.samples.clear()
    await catch_up(agent)
    assert len(server.enrolled) == 2
    assert len(moments(server, server.enrolled[0]["gpus"][0]["uuid"])) > 1000


async def test_a_used_up_enrolment_token_is_replaced(crew: Crew, server: StubIngest, office: OfficeDouble) -> None:
    office.token = "rre_used_up"
    agent = Agent(crew, ONE_GPU)
    with pytest.raises(TokenRefusedError):
        await agent.step()
    assert office.refused == ["rre_used_up"]
    await agent.step()
    assert len(server.enrolled) == 1


async def test_too_large_a_batch_is_halved(crew: Crew, server: StubIngest) -> None:
    server.script = lambda request: (
        httpx.Response(413, json={"error": "too_large"}) if len(request.content) > 8_000 else None
    )
    await catch_up(Agent(crew, ONE_GPU))
    assert len(moments(server, server.enrolled[0]["gpus"][0]["uuid"])) > 1000


async def test_a_batch_that_will_never_be_taken_is_said_and_passed_over(crew: Crew, server: StubIngest) -> None:
    said: list[str] = []
    crew.say = said.append
    refusal = httpx.Response(422, json={"error": "invalid", "detail": "no", "field": "samples[3].at"})
    answers = iter([refusal])
    server.script = lambda request: next(answers, None) if request.url.path.endswith("samples") else None
    await catch_up(Agent(crew, ONE_GPU))
    assert "samples[3].at" in said[0]
    assert server.batches


async def test_the_server_can_change_the_pace_and_pause(crew: Crew, server: StubIngest, clock: Clock) -> None:
    agent = Agent(crew, ONE_GPU)
    await catch_up(agent)
    server.config = {"interval_seconds": 10, "report_seconds": 30, "paused": True}
    clock.now += 10
    await agent.step()
    assert (agent.interval_seconds, agent.report_seconds, agent.paused) == (10, 30, True)
    batches = len(server.batches)
    clock.now += 30
    await agent.step()
    assert len(server.batches) == batches
    assert len(server.heartbeats) >= 2


async def test_a_stopped_machine_has_no_agent(crew: Crew, server: StubIngest) -> None:
    assert await Agent(crew, STOPPED).step() > 0
    assert server.enrolled == []


async def test_a_silent_agent_has_said_its_last_fourteen_minutes_ago(
    crew: Crew, server: StubIngest, clock: Clock
) -> None:
    agent = Agent(crew, SILENT)
    await catch_up(agent)
    last = max(at for _, at in server.samples)
    assert clock.now - 14 * 60 - 5 <= last <= clock.now - 14 * 60
    assert server.heartbeats == []


async def test_a_lost_gpu_comes_with_its_xid(crew: Crew, server: StubIngest) -> None:
    await catch_up(Agent(crew, LOST))
    uuid = server.enrolled[0]["gpus"][5]["uuid"]
    assert {(event["kind"], event.get("code")) for event in server.events if event["gpu"] == uuid} == {
        ("xid", 79),
        ("gpu_lost", None),
    }


async def test_a_machine_that_comes_back_has_a_gap_and_a_new_boot(crew: Crew, server: StubIngest, clock: Clock) -> None:
    agent = Agent(crew, ONE_GPU)
    await catch_up(agent)
    boot = server.batches[-1]["boot_id"]
    crew.desk.change(ONE_GPU, type(crew.desk.get(ONE_GPU)).stop)
    clock.now += 600
    assert await agent.step() > 0
    crew.desk.change(ONE_GPU, type(crew.desk.get(ONE_GPU)).start)
    clock.now += 60
    started_at = crew.desk.get(ONE_GPU).started_at
    await catch_up(agent)
    first_after = min(at for _, at in server.samples if at > clock.now - 300)
    assert started_at is not None
    assert first_after > started_at
    assert server.batches[-1]["boot_id"] != boot
    assert "inventory" in server.batches[-1]
