"""The websocket: who may listen, what they hear, and when it ends."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque

import pytest
from asgiref.sync import sync_to_async

from fleet.meters import meters
from fleet.teams.access import announce_access_change
from fleet.teams.models import Membership
from fleet.teams.sessions import end_sessions
from fleet.telemetry import consumers, live_rounds
from fleet.telemetry.live_access import Watch
from tests.fleet.telemetry.browsers import connected

pytestmark = pytest.mark.django_db(transaction=True)


async def test_open_sockets_are_counted(machine, vera, page_of):
    def open_now() -> float:
        return meters._gauges["websocket_clients"]()

    before = open_now()
    page = await connected(await page_of(vera))
    assert open_now() == before + 1
    await page.disconnect()
    assert open_now() == before


async def test_a_member_hears_each_commit_of_the_machines_shown(machine, reporter, vera, page_of):
    page = await connected(await page_of(vera))
    assert await page.subscribe(team="acme", machines=[machine.pk]) == {"type": "subscribed", "machines": [machine.pk]}
    at = time.time() - 2
    reading = {"uuid": "GPU-a", "utilization_percent": 91.0, "memory_used_bytes": 1 << 34}
    await reporter.samples({"at": at, "host": {"cpu_percent": 7.0}, "gpus": [reading]})
    message = await page.hear()
    assert (message["type"], message["machine"]) == ("sample", machine.pk)
    (sample,) = message["samples"]
    assert sample["at"] == pytest.approx(at)
    assert sample["host"]["cpu_percent"] == 7.0
    ((gpu_id, told),) = sample["gpus"].items()
    assert gpu_id == str((await machine.gpus.aget()).pk)
    assert (told["utilization_percent"], told["power_watts"], told["state"]) == (91.0, None, "working")


async def test_a_heartbeat_is_told_too(machine, reporter, vera, page_of):
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")
    await reporter.post("heartbeat", {"v": 1, "sent_at": time.time(), "nvml": {"state": "hung"}})
    message = await page.hear()
    assert (message["type"], message["machine"], message["nvml"]) == ("heartbeat", machine.pk, "hung")


async def test_a_replayed_sample_is_no_news(reporter, vera, page_of):
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")
    await reporter.samples({"at": time.time() - 600, "host": {"load1": 1.0}})
    await reporter.post("heartbeat", {"v": 1, "sent_at": time.time()})
    assert (await page.hear())["type"] == "heartbeat"


async def test_another_team_is_told_that_there_is_nothing(machine, charlie, page_of):
    page = await connected(await page_of(charlie))
    refused = {"type": "refused", "reason": "There is no such team or machine."}
    assert await page.subscribe(team="acme") == refused
    assert await page.subscribe(team="rival", machines=[machine.pk]) == refused
    assert await page.subscribe(team="nobody") == refused


async def test_a_stranger_is_sent_away(acme, page_of):
    page = await connected(await page_of())
    assert await page.code_of_close() == 4401


async def test_a_page_of_another_origin_is_not_let_in(vera, page_of):
    page = await page_of(vera, origin="https://evil.example")
    assert not await page.connect()


NO_WISHES = [
    *("", "[]", "{", '{"subscribe": 5}', '{"subscribe": {"team": 5}}', '{"other": 1}'),
    *('{"subscribe": {"team": "a\\u0000"}}', '{"subscribe": {"team": "acme\\n"}}'),
    '{"subscribe": {"team": "acme", "machines": [9223372036854775808]}}',
]


@pytest.mark.parametrize("text", NO_WISHES)
async def test_what_is_no_wish_is_refused_with_what_to_send(vera, page_of, text):
    page = await connected(await page_of(vera))
    await page.send_text(text)
    assert "subscribe" in (await page.hear())["reason"]


async def test_the_socket_ends_when_the_membership_is_announced_to_have_ended(machine, vera, page_of, monkeypatch):
    monkeypatch.setattr(live_rounds, "CHECK_SECONDS", 3600)
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")
    await Membership.objects.filter(user=vera).adelete()
    await sync_to_async(announce_access_change)(vera)
    assert await page.code_of_close() == 4403


async def test_the_socket_ends_by_itself_when_the_session_does(machine, vera, page_of, monkeypatch):
    monkeypatch.setattr(live_rounds, "CHECK_SECONDS", 0.05)
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")
    await sync_to_async(end_sessions)(user=vera)
    assert await page.code_of_close() == 4403


async def test_a_machine_that_joins_the_team_is_followed(make_instance, reporter_for, vera, page_of, monkeypatch):
    monkeypatch.setattr(live_rounds, "CHECK_SECONDS", 0.05)
    page = await connected(await page_of(vera))
    assert (await page.subscribe(team="acme"))["machines"] == []
    newcomer = await sync_to_async(make_instance)(name="late")
    reporter = await reporter_for(newcomer)
    async with asyncio.timeout(10):
        while True:
            await reporter.post("heartbeat", {"v": 1, "sent_at": time.time()})
            if not await page.receive_nothing(timeout=0.3):
                break
    assert (await page.hear())["machine"] == newcomer.pk


async def test_a_broker_that_is_away_holds_no_post_up(ingest, machine, reporter, vera, page_of, monkeypatch, caplog):
    publisher = (await ingest.start()).publisher
    watched = publisher._watched

    async def away(_):
        raise ConnectionError("refused")

    monkeypatch.setattr(publisher, "_watched", away)
    for _ in range(3):
        assert (await reporter.samples({"at": time.time(), "host": {"load1": 1.0}})).status_code == 200
    monkeypatch.setattr(publisher, "_watched", watched)
    page = await connected(await page_of(vera))
    await page.subscribe(team="acme")
    await reporter.samples({"at": time.time(), "host": {"load1": 2.0}})
    heard = await page.hear()
    # Told of what it was not told before, where the broker came back only after it had begun to listen.
    heard = await page.hear() if heard["type"] == "gap" else heard
    assert heard["samples"][-1]["host"]["load1"] == 2.0
    assert caplog.text.count("the broker is away") == 1


async def test_a_browser_that_does_not_read_is_cut_off_and_holds_nobody_up(monkeypatch):
    """The consumer's handler must return at once: the channel layer queues without a bound for one that does not."""
    monkeypatch.setattr(consumers, "MAX_UNSENT", 10)
    consumer = consumers.LiveConsumer()
    consumer.watch, consumer.news, consumer.tasks = Watch("key", "acme", None), asyncio.Event(), []
    consumer.unsent = deque()
    closed: list[int] = []
    reading = asyncio.Event()

    async def stuck(text: str) -> None:
        await reading.wait()

    async def close(code: int) -> None:
        closed.append(code)

    monkeypatch.setattr(consumer, "send", stuck)
    monkeypatch.setattr(consumer, "close", close)
    sending = asyncio.create_task(consumer._send_news())
    for number in range(1000):
        consumer.hear(json.dumps(number))
    assert len(consumer.unsent) == 11
    reading.set()
    await sending
    await asyncio.gather(*consumer.tasks)
    assert closed == [consumers.TOO_SLOW]
