"""What a page could not be told, it is told of: nothing is lost without a word."""

from __future__ import annotations

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from redis.asyncio import Redis

from fleet.meters import meters
from fleet.telemetry.ingest import push
from tests.fleet.telemetry.browsers import Page, connected

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def publisher(ingest, monkeypatch):
    """That of the running web process, which tells only when a test says so."""
    found = (await ingest.start()).publisher
    monkeypatch.setattr(found._news, "set", lambda: None)
    return found


@pytest.fixture
async def second(make_instance, reporter_for):
    instance = await sync_to_async(make_instance)(name="second")
    return instance, await reporter_for(instance)


def dropped(reason: str) -> float:
    return meters._counts.get(("live_dropped", (("reason", reason),)), 0)


async def beat(reporter) -> None:
    assert (await reporter.post("heartbeat", {"v": 1, "sent_at": time.time()})).status_code == 200


async def watching(page_of, user, *machines: int) -> Page:
    page = await connected(await page_of(user))
    assert (await page.subscribe(team="acme", machines=list(machines)))["type"] == "subscribed"
    return page


async def test_a_dropped_commit_tells_every_page_that_shows_its_machine(
    publisher, machine, reporter, second, alice, vera, page_of, monkeypatch
):
    other, other_reporter = second
    pages = [await watching(page_of, user, machine.pk, other.pk) for user in (alice, vera)]
    stranger = await watching(page_of, vera, other.pk)
    before = dropped("queue_full")
    monkeypatch.setattr(push, "MAX_WAITING_ROWS", 2)
    await reporter.samples({"at": time.time(), "host": {"load1": 1.0}})
    await beat(reporter)
    await beat(other_reporter)
    await publisher.flush()
    for page in pages:
        heard = [await page.hear(), await page.hear()]
        assert {(message["type"], message["machine"]) for message in heard} == {
            ("gap", machine.pk),
            ("heartbeat", other.pk),
        }
    assert (await stranger.hear())["machine"] == other.pk
    assert await stranger.receive_nothing()
    assert dropped("queue_full") == before + 1


async def test_after_a_gap_the_page_hears_what_follows_it(publisher, machine, reporter, vera, page_of, monkeypatch):
    page = await watching(page_of, vera, machine.pk)
    monkeypatch.setattr(push, "MAX_WAITING_ROWS", 1)
    await reporter.samples({"at": time.time(), "host": {"load1": 1.0}, "gpus": [{"uuid": "GPU-a"}]})
    await beat(reporter)
    await publisher.flush()
    assert [(await page.hear())["type"], (await page.hear())["type"]] == ["gap", "heartbeat"]


async def test_what_a_broker_did_not_take_is_told_of_when_it_is_back(
    publisher, machine, reporter, vera, page_of, monkeypatch
):
    page = await watching(page_of, vera, machine.pk)
    before = dropped("broker")

    async def away(_ids):
        raise ConnectionError("refused")

    with monkeypatch.context() as patched:
        patched.setattr(publisher, "_watched", away)
        await beat(reporter)
        await publisher.flush()
    await publisher.flush()
    assert (await page.hear())["type"] == "gap"
    assert dropped("broker") == before + 1


async def test_a_page_is_told_that_the_connection_to_the_broker_was_cut(machine, reporter, vera, page_of):
    page = await watching(page_of, vera, machine.pk)
    async with Redis.from_url(settings.REDIS_URL) as client:
        assert await client.execute_command("CLIENT", "KILL", "TYPE", "pubsub") >= 1
    message = await page.hear()
    assert (message["type"], message["machine"]) == ("gap", None)
    await beat(reporter)
    assert (await page.hear())["type"] == "heartbeat"


async def test_commits_are_heard_in_their_order(machine, reporter, vera, page_of):
    pages = [await watching(page_of, vera, machine.pk) for _ in range(3)]
    start = time.time() - 30
    for number in range(30):
        await reporter.samples({"at": start + number, "host": {"load1": float(number)}})
    for page in pages:
        loads: list[float] = []
        async with asyncio.timeout(20):
            while len(loads) < 30:
                loads += [sample["host"]["load1"] for sample in (await page.hear())["samples"]]
        assert loads == [float(number) for number in range(30)]


async def test_the_last_commits_before_a_stop_are_told(ingest, machine, reporter, vera, page_of, monkeypatch):
    service = await ingest.start()
    page = await watching(page_of, vera, machine.pk)
    monkeypatch.setattr(service.publisher._news, "set", lambda: None)
    await beat(reporter)
    await ingest.stop()
    assert (await page.hear())["type"] == "heartbeat"
