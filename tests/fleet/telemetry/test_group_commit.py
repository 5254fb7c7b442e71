"""The flusher: what is accepted is stored, whatever happens to clients, neighbours, the queue or the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async

from fleet.telemetry.ingest import writer as writer_module
from fleet.telemetry.ingest.errors import UnavailableError
from fleet.telemetry.ingest.group import Group
from fleet.telemetry.models import GpuLatest, GpuSample, HostSample
from fleet.telemetry.partitions import existing_partitions
from tests.fleet.telemetry.conftest import batch

pytestmark = pytest.mark.django_db(transaction=True)


def host(at_offset: float = 1.0, **values) -> dict[str, Any]:
    return {"at": time.time() - at_offset, "host": values or {"load1": 1.0}}


async def test_batches_that_come_together_share_a_transaction(reporter, monkeypatch):
    sizes = []
    write = Group.write

    async def counted(self, connection, *samples, now):
        sizes.append(len(self.batches))
        await write(self, connection, *samples, now=now)

    monkeypatch.setattr(Group, "write", counted)
    await reporter.samples()
    sizes.clear()
    await asyncio.gather(*[reporter.samples(host(number)) for number in range(1, 11)])
    assert sum(sizes) == 10
    assert len(sizes) < 10
    assert await HostSample.objects.acount() == 10


async def test_a_client_that_hangs_up_loses_nothing_and_stops_nobody(reporter):
    hasty = asyncio.create_task(reporter.samples(host(5)))
    await asyncio.sleep(0)
    patient = asyncio.create_task(reporter.samples(host(4)))
    queue = (await service_of(reporter))._queue
    await until(lambda: len(queue) == 2)
    hasty.cancel()
    assert (await patient).status_code == 200
    assert await HostSample.objects.acount() == 2
    assert (await reporter.samples(host(3))).status_code == 200


async def until(happened: Callable[[], bool]) -> None:
    """Let the event loop run until something has happened on it."""
    for _ in range(100_000):
        if happened():
            return
        await asyncio.sleep(0)
    raise AssertionError("It never happened.")


async def service_of(reporter):
    return (await reporter.client._transport.app.start()).writer


async def test_a_batch_that_the_database_refuses_does_not_take_the_others_along(
    make_instance, reporter_for, monkeypatch
):
    reporters = [await reporter_for(await sync_to_async(make_instance)(name=f"m{number}")) for number in range(3)]
    bad = reporters[1].agent.instance_id
    write = Group.write

    async def picky(self, connection, *samples, now):
        if any(batch.agent.instance_id == bad for batch in self.batches):
            raise psycopg.errors.NumericValueOutOfRange
        await write(self, connection, *samples, now=now)

    monkeypatch.setattr(Group, "write", picky)
    answers = await asyncio.gather(*[reporter.samples(host()) for reporter in reporters])
    assert [answer.status_code for answer in answers] == [200, 422, 200]
    stored = [sample.instance_id async for sample in HostSample.objects.all()]
    assert sorted(stored) == sorted(reporter.agent.instance_id for reporter in (reporters[0], reporters[2]))


async def test_a_gpu_that_was_just_deleted_is_taken_in_anew(make_instance, reporter_for):
    reporters = [await reporter_for(await sync_to_async(make_instance)(name=f"m{number}")) for number in range(3)]
    for reporter in reporters:
        await reporter.samples()
    # A GPU that was deleted a moment ago: the cache still knows it, its latest row has nothing to point to.
    bad = reporters[1]
    await bad.samples({"at": time.time(), "gpus": [{"uuid": "GPU-x"}]})
    await GpuLatest.objects.all().adelete()
    await bad.agent.instance.gpus.all().adelete()
    for agent in (await service_of_agents(bad))._known.values():
        agent.has_latest.clear()
    sample = {"at": time.time(), "host": {"load1": 1.0}, "gpus": [{"uuid": "GPU-x", "power_watts": 1.0}]}
    answers = await asyncio.gather(reporters[0].samples(host()), bad.samples(sample), reporters[2].samples(host()))
    assert [answer.status_code for answer in answers] == [200, 503, 200]
    assert await HostSample.objects.acount() == 2
    assert (await bad.samples(sample)).status_code == 200


async def service_of_agents(reporter):
    return (await reporter.client._transport.app.start()).agents


async def test_a_full_queue_is_answered_with_busy_and_nothing_is_kept(reporter, monkeypatch):
    await reporter.samples()
    monkeypatch.setattr(writer_module, "QUEUE_MAX_BATCHES", 2)
    answers = await asyncio.gather(*[reporter.samples(host(number)) for number in range(1, 6)])
    accepted = [answer for answer in answers if answer.status_code == 200]
    busy = [answer for answer in answers if answer.status_code == 429]
    assert (len(accepted), len(busy)) == (2, 3)
    assert all(int(answer.headers["Retry-After"]) > 0 and answer.json()["error"] == "busy" for answer in busy)
    assert await HostSample.objects.acount() == 2
    assert (await reporter.samples(host(9))).status_code == 200


async def test_one_batch_larger_than_the_queue_is_still_taken(reporter, monkeypatch):
    monkeypatch.setattr(writer_module, "QUEUE_MAX_ROWS", 1)
    assert (await reporter.samples(host(1), host(2), host(3))).status_code == 200


async def test_a_day_without_a_partition_is_made_on_the_way(reporter):
    for partition in await sync_to_async(existing_partitions)():
        await execute(f"DROP TABLE {partition.name}")
    answer = await reporter.samples({"at": time.time(), "host": {"load1": 1.0}, "gpus": [{"uuid": "GPU-a"}]})
    assert answer.status_code == 200
    assert (await GpuSample.objects.acount(), await HostSample.objects.acount()) == (1, 1)


async def execute(statement: str) -> None:
    from django.db import connection

    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    await sync_to_async(run)()


async def test_a_database_that_is_away_is_said_and_found_again(reporter, monkeypatch):
    await reporter.samples()
    write = Group.write

    async def broken(self, connection, *, now):
        raise psycopg.OperationalError("the database system is shutting down")

    monkeypatch.setattr(Group, "write", broken)
    answer = await reporter.samples(host())
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    monkeypatch.setattr(Group, "write", write)
    assert (await reporter.samples(host())).status_code == 200
    assert await HostSample.objects.acount() == 1


async def test_an_error_that_nobody_foresaw_ends_no_flusher(reporter, monkeypatch, caplog):
    await reporter.samples()
    write = Group.write

    async def broken(self, connection, *, now):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Group, "write", broken)
    for _ in range(3):
        assert (await reporter.samples(host())).status_code == 503
    assert "could not be written" in caplog.text
    monkeypatch.setattr(Group, "write", write)
    assert (await reporter.samples(host())).status_code == 200


async def test_what_was_accepted_is_written_before_the_process_ends(ingest, reporter):
    await reporter.samples()
    posts = [asyncio.create_task(reporter.samples(host(number))) for number in range(1, 6)]
    service = await ingest.start()
    await until(lambda: len(service.writer._queue) == 5)
    await ingest.stop()
    assert [answer.status_code for answer in await asyncio.gather(*posts)] == [200] * 5
    assert await HostSample.objects.acount() == 5


async def test_an_empty_batch_is_an_answer_too(reporter):
    answer = await reporter.post("samples", batch())
    assert answer.json()["accepted"] == {"gpu": 0, "host": 0, "events": 0}


def test_a_refusal_says_when_to_come_back():
    assert UnavailableError("x").retry_after
