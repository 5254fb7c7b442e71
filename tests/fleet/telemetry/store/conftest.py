"""Each engine as tests use it: `put` stores samples as ingest does and makes them readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from asgiref.sync import async_to_sync

from fleet.inventory.models import GPU, Instance
from fleet.states import GpuState
from fleet.telemetry.ingest.database import make_pool
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR
from fleet.telemetry.rollups.models import RollupProgress
from fleet.telemetry.rollups.roll import Rolled
from fleet.telemetry.state_codes import STATE_CODES
from fleet.telemetry.store import current_store
from fleet.telemetry.store.base import Samples
from tests.fleet.telemetry.store.servers import prometheus, victoria_metrics

Row = tuple[Any, ...]


def gpu_row(gpu: GPU, at: datetime, *, state: GpuState = GpuState.WORKING, **values: float) -> Row:
    return (gpu.pk, at.timestamp(), STATE_CODES[state], None, *(values.get(name) for name in GPU_COLUMNS))


def host_row(instance: Instance, at: datetime, **values: float) -> Row:
    return (instance.pk, at.timestamp(), None, None, *(values.get(name) for name in HOST_COLUMNS))


@dataclass
class Engine:
    name: str
    settle: Callable[[], object]

    def put(self, *, gpus: Sequence[Row] = (), hosts: Sequence[Row] = ()) -> Counter[int]:
        """Returns what the store refused, by machine."""
        machines = dict(GPU.objects.values_list("pk", "instance_id"))
        refused = async_to_sync(write)(Samples(gpus, hosts, (), machines))
        self.settle()
        return refused

    def roll_up(self, now: datetime, *, since: datetime) -> Rolled:
        """As if there had been nothing before `since`, with five minutes only of the last hours."""
        for resolution, start in ((FIVE_MINUTES, max(since, now - timedelta(hours=25))), (HOUR, since)):
            RollupProgress.objects.get_or_create(
                resolution=resolution.name, defaults={"rolled_until": resolution.floor(start)}
            )
        return current_store().roll_up(now=now)


async def write(samples: Samples) -> Counter[int]:
    pool, writer = make_pool(), current_store().sample_writer()
    await pool.open()
    try:
        refused = await writer.send(samples)
        async with pool.connection() as connection:
            await writer.insert(connection, samples)
    finally:
        await writer.close()
        await pool.close()
    return refused


@pytest.fixture(scope="session")
def victoria(tmp_path_factory):
    with victoria_metrics(tmp_path_factory.mktemp("victoria")) as url:
        yield url


@pytest.fixture
def in_victoria(settings, victoria):
    """Settings that keep readings in a VictoriaMetrics, which forgets after the test what it wrote."""
    use(settings, write=f"{victoria}/api/v1/write", read=victoria)
    yield victoria
    series = {"match[]": '{__name__=~"rackrent_.+"}'}
    httpx.post(f"{victoria}/api/v1/admin/tsdb/delete_series", data=series).raise_for_status()


def use(settings, *, write: str, read: str) -> None:
    settings.TELEMETRY_STORE = "prometheus"
    settings.TELEMETRY_WRITE_URL, settings.TELEMETRY_READ_URL = write, read


def settle_victoria(url: str) -> None:
    """Samples can be found a second after they were taken; a test asks for them to be found now."""
    httpx.get(f"{url}/internal/force_flush").raise_for_status()


@pytest.fixture(params=["postgresql", "prometheus"])
def engine(request, transactional_db) -> Engine:
    """PostgreSQL, and a real VictoriaMetrics."""
    if request.param == "postgresql":
        return Engine("postgresql", lambda: None)
    url = request.getfixturevalue("in_victoria")
    return Engine("prometheus", lambda: settle_victoria(url))


@pytest.fixture
def days(transactional_db):
    """days(now, since) makes PostgreSQL's partitions for that time."""
    return lambda now, since: ensure_partitions(now=now, since=since)


@pytest.fixture(scope="session")
def receiving_prometheus(tmp_path_factory):
    """A Prometheus that takes remote write, and nothing out of order."""
    flags = ["--web.enable-remote-write-receiver"]
    with prometheus(tmp_path_factory.mktemp("prometheus"), flags=flags) as url:
        yield url
