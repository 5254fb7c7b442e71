"""Replaying a trace against a server that is full, away, forgetful or hard of understanding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fleet.sandbox.client import IngestClient
from fleet.sandbox.replay import Replay
from fleet.sandbox.replay_memory import ReplayError, ReplayMemory, memory_path, outside_window
from fleet.traces import Trace, read_trace
from tests.fleet.sandbox.stub_ingest import StubIngest, busy

PODS, ROWS, STEP = 5, 900, 57
START = 1_796_000_000.0


class Time:
    """A clock that moves only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = START + ROWS * STEP
        self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        await asyncio.sleep(0)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def server() -> StubIngest:
    return StubIngest()


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    rows = [f"pod-{pod},{row * STEP},{row % 101},{1000 + row}" for pod in range(PODS) for row in range(ROWS)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["pod,t_s,gpu_util_percent,memory_used_bytes", *rows]))
    return read_trace(path)


@pytest.fixture
async def http(server: StubIngest) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(server)) as client:
        yield client


@pytest.fixture
def replay(tmp_path: Path, trace: Trace, http: httpx.AsyncClient, time: Time):
    """replay() is a new run over the same memory file, as after an interruption."""
    opened: list[ReplayMemory] = []

    def run(*, start: float = START, token: str = "rre_good", **options) -> Replay:
        memory = ReplayMemory(memory_path(tmp_path / "state", trace, "http://dashboard", "team"))
        memory.open()
        opened.append(memory)
        memory.begin_at(start)

        async def enrolment_token() -> str:
            return token

        client = IngestClient("http://dashboard", http)
        return Replay(trace, memory, client, enrolment_token=enrolment_token, clock=time, sleep=time.sleep, **options)

    yield run
    for memory in opened:
        memory.close()


async def test_every_reading_arrives_once_at_its_moment(replay, server: StubIngest) -> None:
    await replay().run()
    assert len(server.samples) == server.posted == PODS * ROWS
    assert len(server.enrolled) == PODS
    assert {at for _, at in server.samples} == {START + row * STEP for row in range(ROWS)}


async def test_values_are_those_of_the_trace(replay, server: StubIngest) -> None:
    await replay().run()
    uuid = server.enrolled[0]["gpus"][0]["uuid"]
    reading = server.samples[uuid, START + 17 * STEP]
    assert (reading["utilization_percent"], reading["memory_used_bytes"]) == (17, 1017)


async def test_a_full_server_is_asked_again_after_the_time_it_named(replay, server: StubIngest, time: Time) -> None:
    answers = iter([busy(429, "7")] * 3)
    server.script = lambda request: next(answers, None)
    await replay().run()
    assert len(server.samples) == PODS * ROWS
    assert time.slept >= 3 * 7


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_failing_server_is_asked_again(replay, server: StubIngest, status: int) -> None:
    answers = iter([httpx.Response(status, text="<html>")] * 6)
    server.script = lambda request: next(answers, None)
    await replay().run()
    assert len(server.samples) == PODS * ROWS


async def test_a_lost_connection_after_the_commit_stores_nothing_twice(replay, server: StubIngest) -> None:
    calls = 0

    def lose_every_third_answer(request: httpx.Request) -> httpx.Response | None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            server._answer(request)
            raise httpx.ReadError("connection reset")
        return None

    server.script = lose_every_third_answer
    await replay().run()
    assert server.posted > PODS * ROWS
    assert len(server.samples) == PODS * ROWS


async def test_an_interrupted_replay_goes_on_where_it_was(replay, server: StubIngest) -> None:
    first = replay()
    running = asyncio.create_task(first.run())

    def break_off(request: httpx.Request) -> None:
        if len(server.samples) >= 1500:
            running.cancel()

    server.script = break_off
    with pytest.raises(asyncio.CancelledError):
        await running
    first.memory.close()
    server.script = lambda request: None
    second = replay()
    assert second.done >= 1000
    await second.run()
    assert len(server.samples) == PODS * ROWS
    assert server.posted < PODS * ROWS + 1800
    assert len(server.enrolled) == PODS


async def test_without_its_memory_it_sends_all_again_and_nothing_is_stored_twice(
    replay, server: StubIngest, trace: Trace
) -> None:
    first = replay()
    await first.run()
    first.memory.close()
    first.memory.path.unlink()
    await replay().run()
    assert server.posted == 2 * PODS * ROWS
    assert len(server.samples) == PODS * ROWS


async def test_a_finished_replay_has_nothing_to_send(replay, server: StubIngest) -> None:
    first = replay()
    await first.run()
    first.memory.close()
    posted = server.posted
    await replay().run()
    assert server.posted == posted


async def test_a_server_that_forgot_the_agents_gets_everything_again(replay, server: StubIngest) -> None:
    forgot = False

    def forget_once(request: httpx.Request) -> None:
        nonlocal forgot
        if len(server.samples) > 300 and not forgot:
            forgot = True
            server.tokens.clear()
            server.samples.clear()

    server.script = forget_once
    await replay().run()
    assert len(server.samples) == PODS * ROWS


async def test_a_refused_enrolment_token_ends_it_with_a_remedy(replay) -> None:
    with pytest.raises(ReplayError, match="Make a new one under Settings, Agents, for 5 machines"):
        await replay(token="rre_old").run()


async def test_an_agent_token_that_never_works_ends_it(replay, server: StubIngest) -> None:
    server.script = lambda request: (
        httpx.Response(401, json={"error": "bad_token"}) if request.url.path.endswith("samples") else None
    )
    with pytest.raises(ReplayError, match="refused each time"):
        await replay().run()


async def test_an_address_without_ingest_ends_it(replay, server: StubIngest) -> None:
    server.script = lambda request: httpx.Response(404, text="nothing here")
    with pytest.raises(ReplayError, match="Check --url"):
        await replay().run()


async def test_a_server_that_stays_away_ends_it_after_a_while(replay, server: StubIngest, time: Time) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    server.script = away
    with pytest.raises(ReplayError, match="Run the same command again later"):
        await replay(give_up_seconds=300).run()
    assert 300 <= time.slept < 400


async def test_what_the_server_does_not_keep_is_named_by_line(replay, server: StubIngest) -> None:
    def keep_less(request: httpx.Request) -> httpx.Response | None:
        if request.url.path.endswith("samples") and len(server.batches) == 0:
            server._answer(request)
            return httpx.Response(200, json={"accepted": {"gpu": 300}, "dropped": {"at": 60}, "config": {}})
        return None

    server.script = keep_less
    progress = await replay().run()
    assert len(progress.lost) == 1
    assert "lines 2 to 361: 60 of 360 were not kept" in progress.lost[0]
    assert progress.values_dropped == {"at": 60}


async def test_a_refused_batch_is_named_and_the_rest_goes_on(replay, server: StubIngest) -> None:
    answers = iter([httpx.Response(422, json={"error": "invalid", "detail": "no", "field": "samples"})])
    server.script = lambda request: next(answers, None) if request.url.path.endswith("samples") else None
    progress = await replay().run()
    assert "lines 2 to 361: 422 invalid no (field samples)" in progress.lost[0]
    assert len(server.samples) == PODS * ROWS - 360


async def test_too_large_batches_are_halved(replay, server: StubIngest) -> None:
    server.script = lambda request: (
        httpx.Response(413, json={"error": "too_large"}) if len(request.content) > 2000 else None
    )
    await replay().run()
    assert len(server.samples) == PODS * ROWS


class TestPace:
    async def test_a_speed_takes_its_time(self, replay, server: StubIngest, time: Time) -> None:
        began = time.now
        await replay(speed=100).run()
        assert len(server.samples) == PODS * ROWS
        assert time.now - began >= (ROWS - 1) * STEP / 100

    async def test_no_reading_goes_before_its_moment(self, replay, server: StubIngest, time: Time) -> None:
        newest_lead: list[float] = []
        original = server._samples

        def watch(machine: str, body: dict[str, list[dict[str, float]]]) -> httpx.Response:
            newest_lead.append(max(sample["at"] for sample in body["samples"]) - time.now)
            return original(machine, body)

        server._samples = watch  # type: ignore[method-assign]
        await replay(start=time.now - ROWS * STEP + 600, speed=1000).run()
        assert max(newest_lead) <= 0
        assert len(server.samples) == PODS * ROWS


class TestWindow:
    def test_what_is_older_than_the_server_takes_is_counted(self, replay, trace: Trace, time: Time) -> None:
        run = replay(start=START)
        time.now = START + 48 * 3600 + 10 * STEP
        outside = outside_window(trace, run.memory, START, time.now)
        assert outside is not None
        assert outside.pods == PODS
        assert outside.readings == PODS * (10 + 120 // STEP + 1)
        assert outside_window(trace, run.memory, outside.earliest_start, time.now) is None

    async def test_it_stops_at_a_reading_that_grew_too_old(self, replay, time: Time) -> None:
        time.now = START + 48 * 3600 + 10 * STEP
        with pytest.raises(ReplayError, match=r"Line \d+ .*--skip-old"):
            await replay(start=START).run()

    async def test_on_demand_it_leaves_them_out_and_says_how_many(self, replay, server: StubIngest, time: Time) -> None:
        time.now = START + 48 * 3600 + 10 * STEP
        progress = await replay(start=START, skip_old=True).run()
        assert progress.skipped + len(server.samples) == PODS * ROWS
        assert progress.skipped >= PODS * 10


def test_two_replays_of_one_trace_to_one_place_do_not_run_at_once(replay) -> None:
    first = replay()
    with pytest.raises(ReplayError, match="Another process"):
        replay()
    first.memory.close()
    replay()


def test_its_memory_is_for_its_owner_only(replay) -> None:
    run = replay()
    run.memory.close()
    assert run.memory.path.stat().st_mode & 0o777 == 0o600
