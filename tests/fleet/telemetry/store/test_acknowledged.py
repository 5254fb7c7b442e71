"""An agent hears "stored" only after the store has said so; what the store will never take does not stand in the way of the rest."""

from __future__ import annotations

import time

import httpx
import pytest
from asgiref.sync import sync_to_async

from fleet.telemetry.models import Agent, GpuLatest, GpuSample, HostSample
from tests.fleet.telemetry.store.conftest import use
from tests.fleet.telemetry.store.fake import fake_store

pytestmark = pytest.mark.django_db(transaction=True)


def sample(at, **gpu):
    return {"at": at, "gpus": [{"uuid": "GPU-a", "utilization_percent": 50.0, **gpu}], "host": {"cpu_percent": 1.0}}


@pytest.fixture(autouse=True)
def fake(settings):
    """Before ingest starts: it reads where to write when it does."""
    with fake_store() as store:
        use(settings, write=f"{store.url}/write", read=store.url)
        yield store


async def test_readings_go_to_the_store_and_latest_values_to_postgresql(reporter, fake):
    answer = await reporter.samples(sample(time.time()))
    assert answer.status_code == 200
    assert answer.json()["accepted"] == {"gpu": 1, "host": 1, "events": 0}
    assert len(fake.asked) == 1
    assert await GpuLatest.objects.acount() == 1
    assert await GpuSample.objects.acount() + await HostSample.objects.acount() == 0


@pytest.mark.parametrize("status", [500, 503, 401, 404, 302])
async def test_a_store_that_does_not_take_it_is_a_503_and_nothing_is_kept(reporter, fake, status):
    fake.status = status
    answer = await reporter.samples(sample(time.time()))
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert await GpuLatest.objects.acount() == 0


async def test_a_store_that_is_busy_is_a_429_with_its_own_wait(reporter, fake):
    fake.status, fake.headers = 429, {"Retry-After": "17"}
    answer = await reporter.samples(sample(time.time()))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "17")


async def test_what_was_refused_is_stored_when_it_is_sent_again(reporter, fake):
    fake.status = 503
    body = sample(time.time())
    assert (await reporter.samples(body)).status_code == 503
    fake.status = 204
    assert (await reporter.samples(body)).status_code == 200
    assert await GpuLatest.objects.acount() == 1


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_is_refused_for_good_is_counted_and_does_not_come_back(reporter, fake, status):
    fake.status = status
    answer = await reporter.samples(sample(time.time() - 1), sample(time.time()))
    assert answer.status_code == 200
    # Two samples of one reading of the GPU with its state, and one of the host.
    assert answer.json()["dropped"] == {"refused_by_store": 6}
    agent = await Agent.objects.aget(pk=reporter.agent.pk)
    assert agent.dropped_values == {"refused_by_store": 6}


async def test_only_what_is_out_of_order_is_lost(settings, receiving_prometheus, reporter_for, make_instance, fake):
    """A real Prometheus refuses the whole request for one sample that is too old."""
    use(settings, write=f"{receiving_prometheus}/api/v1/write", read=receiving_prometheus)
    machine = await sync_to_async(make_instance)(name="real", gpus=1)
    await machine.gpus.aupdate(uuid="GPU-a")
    reporter = await reporter_for(machine)
    now = time.time()
    assert (await reporter.samples(sample(now - 10))).json()["dropped"] == {}
    answer = await reporter.samples(sample(now - 20), sample(now - 5))
    assert answer.status_code == 200
    assert answer.json()["dropped"] == {"refused_by_store": 3}
    query = {"query": f'rackrent_gpu_utilization_percent{{machine="{machine.pk}"}}[1m]'}
    found = await sync_to_async(httpx.get)(f"{receiving_prometheus}/api/v1/query", params=query)
    moments = [moment for moment, _ in found.json()["data"]["result"][0]["values"]]
    assert moments == [pytest.approx(now - 10, abs=0.001), pytest.approx(now - 5, abs=0.001)]
