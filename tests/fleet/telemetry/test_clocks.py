"""Machines with wrong clocks: their readings land at the right moment, once, and hurt nobody else."""

from __future__ import annotations

import time

import pytest
import time_machine

from fleet.telemetry.ingest.agents import AgentCache
from fleet.telemetry.ingest.registry import prepare_machine
from fleet.telemetry.models import Agent, GpuSample, HostSample
from fleet.telemetry.wire import Batch
from tests.fleet.telemetry.conftest import batch

HOUR = 3600.0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("skew", [-HOUR, HOUR, -30.0])
async def test_a_wrong_clock_is_corrected_and_shown(reporter, skew):
    now = time.time()
    await reporter.samples({"at": now - 5 - skew, "host": {"load1": 1.0}}, sent_at=now - skew)
    stored = await HostSample.objects.aget()
    assert stored.sampled_at.timestamp() == pytest.approx(now - 5, abs=1.0)
    agent = await Agent.objects.aget()
    assert agent.clock_skew_seconds == pytest.approx(skew, abs=1.0)


@pytest.mark.django_db(transaction=True)
async def test_a_clock_half_a_minute_behind_is_told_from_a_batch_that_waited(reporter):
    """The first two might have waited for a restart; three in a row did not."""
    now = time.time()
    for number in range(3):
        await reporter.samples({"at": now - 50 + number, "host": {"load1": 1.0}}, sent_at=now - 30)
    newest = await HostSample.objects.order_by("-sampled_at").afirst()
    assert newest is not None
    assert newest.sampled_at.timestamp() == pytest.approx(now - 18, abs=1.0)
    assert (await Agent.objects.aget()).clock_skew_seconds == pytest.approx(30, abs=1.0)


@pytest.mark.django_db(transaction=True)
async def test_a_skewed_batch_sent_again_is_stored_once(reporter):
    """The second journey takes 2.4 s longer: a correction made anew would move the keys."""
    now = time.time()
    sample = {"at": now - HOUR - 5, "gpus": [{"uuid": "GPU-a", "power_watts": 1.0}], "host": {"load1": 1.0}}
    for sent_at in (now - HOUR, now - HOUR - 2.4):
        answer = await reporter.samples(sample, sent_at=sent_at)
        assert answer.json()["accepted"] == {"gpu": 1, "host": 1, "events": 0}
    assert (await GpuSample.objects.acount(), await HostSample.objects.acount()) == (1, 1)


@pytest.mark.django_db(transaction=True)
async def test_two_web_processes_agree_on_the_correction(ingest, reporter):
    """Each measures for itself; the one that comes second takes what the first has stored."""
    service = await ingest.start()
    caches = [AgentCache(service.pool), AgentCache(service.pool)]
    agents = [await cache.find(reporter.token) for cache in caches]
    for agent, measured in zip(agents, (1000.2, 1003.7), strict=True):
        assert agent is not None
        said = Batch(v=1, sent_at=1000.0)
        await prepare_machine(service.pool, agent, said, received_at=1000.0 + measured)
    assert [agent.skew_seconds for agent in agents if agent] == [1000.0, 1000.0]


@pytest.mark.django_db(transaction=True)
async def test_moments_outside_the_window_are_dropped_and_counted(reporter):
    now = time.time()
    ages = {"too old": 48 * HOUR + 60, "old": 48 * HOUR - 60, "now": 0, "early": -50, "too early": -70}
    answer = await reporter.samples(*[{"at": now - age, "host": {"load1": 1.0}} for age in ages.values()])
    assert answer.json()["accepted"]["host"] == 3
    assert answer.json()["dropped"] == {"at": 2}
    assert (await Agent.objects.aget()).dropped_values == {"at": 2}


@pytest.mark.django_db(transaction=True)
async def test_nan_is_no_moment(reporter):
    now = time.time()
    nan = float("nan")
    body = batch({"at": nan, "host": {"load1": 1}}, sent_at=now, events=[{"at": nan, "kind": "xid"}])
    answer = await reporter.post("samples", body)
    assert answer.json()["accepted"] == {"gpu": 0, "host": 0, "events": 0}
    assert answer.json()["dropped"] == {"at": 2}


@pytest.mark.django_db(transaction=True)
async def test_midnight_needs_nobody(machine, reporter_for):
    """The days ahead are there before they begin; the server's own clock runs into the new day."""
    reporter = await reporter_for(machine)
    midnight = (int(time.time()) // 86_400 + 1) * 86_400
    with time_machine.travel(midnight - 2, tick=False) as clock:
        assert (await reporter.post("samples", batch({"at": time.time(), "host": {"load1": 1}}))).status_code == 200
        clock.shift(4)
        assert (await reporter.post("samples", batch({"at": time.time(), "host": {"load1": 2}}))).status_code == 200
    assert await HostSample.objects.acount() == 2
