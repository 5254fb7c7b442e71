"""A machine without an agent, watched through a real Prometheus that scraped its exporters: charted, judged, with its gaps."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest

from fleet.states import GpuState
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import GpuLatest, GpuSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.series import gpu_series
from fleet.telemetry.sources.models import PrometheusSource
from fleet.telemetry.sources.read import read_source
from tests.fleet.telemetry.scrape.pages import CARD, dcgm
from tests.fleet.telemetry.store.servers import prometheus

pytestmark = pytest.mark.django_db(transaction=True)

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: dcgm
    metrics_path: /
    static_configs: [{{targets: ["{target}"]}}]
"""
PAGE = dcgm(DEV_GPU_UTIL=87, DEV_POWER_USAGE=512.5, DEV_FB_USED=40960, DEV_FB_FREE=38912, PROF_SM_ACTIVE=0.61)


@pytest.fixture(scope="module")
def exporter():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def own_prometheus(tmp_path_factory, exporter):
    """It has scraped the exporter three times."""
    with prometheus(tmp_path_factory.mktemp("own"), config=CONFIG.format(target=exporter)) as url:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and len(moments_at(url)) < 3:
            time.sleep(0.1)
        yield url


def moments_at(url: str) -> list[float]:
    query = {"query": "DCGM_FI_DEV_GPU_UTIL[5m]"}
    result = httpx.get(f"{url}/api/v1/query", params=query, trust_env=False).json()["data"]["result"]
    return [moment for moment, _ in result[0]["values"]] if result else []


def read(source: PrometheusSource) -> str:
    claim = uuid.uuid4()
    PrometheusSource.objects.filter(pk=source.pk).update(claim=claim)
    outcome = read_source(source.pk, claim=claim)
    assert outcome is not None
    return f"{outcome.code} {outcome.detail}".strip()


@pytest.fixture
def source(make_source, own_prometheus):
    ensure_partitions(now=datetime.now(UTC))
    source = make_source(own_prometheus)
    PrometheusSource.objects.filter(pk=source.pk).update(read_until=datetime.now(UTC) - timedelta(minutes=5))
    source.refresh_from_db()
    return source


def test_its_samples_are_stored_at_the_moments_they_were_scraped(source, own_prometheus, make_instance):
    machine = make_instance(name="node-1")
    known = moments_at(own_prometheus)
    assert read(source) == ""
    gpu = machine.gpus.get()
    assert (gpu.uuid, gpu.name) == (CARD, "NVIDIA H100 80GB HBM3")
    stored = {sample.sampled_at.timestamp() for sample in GpuSample.objects.filter(gpu=gpu)}
    assert {round(moment, 3) for moment in known} <= {round(moment, 3) for moment in stored}
    latest = GpuLatest.objects.get(gpu=gpu)
    assert (latest.utilization_percent, latest.power_watts, latest.sm_activity) == (87.0, 512.5, 0.61)
    assert latest.memory_used_bytes == 40960 << 20


def test_the_machine_is_judged_and_charted(source, make_instance):
    machine = make_instance(name="node-1")
    read(source)
    now = datetime.now(UTC)
    assert [one.state for one in machines_now([machine], now=now)] == [GpuState.WORKING]
    series = gpu_series(
        gpu_ids=[machine.gpus.get().pk], fields=["power_watts"], since=now - timedelta(minutes=10), until=now
    )
    assert set(filter(None, series.values[machine.gpus.get().pk]["power_watts"])) == {512.5}


def test_read_again_it_stores_nothing_twice(source, make_instance):
    machine = make_instance(name="node-1")
    read(source)
    read(source)
    moments = list(GpuSample.objects.filter(gpu__instance=machine).values_list("sampled_at", flat=True))
    assert len(moments) == len(set(moments)) >= 3
    source.refresh_from_db()
    assert source.last_ok_at is not None
    assert source.read_until > datetime.now(UTC) - timedelta(minutes=1)


def test_a_label_without_a_machine_waits_for_one(source, acme):
    read(source)
    row = source.machines.get()
    assert (row.label, row.instance, row.sample_seconds) == ("node-1", None, 1)
    assert not acme.instances.exists()


def test_machines_can_be_added_by_their_labels(source, acme):
    PrometheusSource.objects.filter(pk=source.pk).update(adds_machines=True)
    read(source)
    read(source)
    machine = acme.instances.get()
    assert machine.name == "node-1"
    assert machine.gpus.count() == 1


def test_a_selector_narrows_what_is_read(source, make_instance):
    make_instance(name="node-1")
    PrometheusSource.objects.filter(pk=source.pk).update(selector='job="other"')
    assert read(source) == ""
    assert not source.machines.exists()


def test_a_selector_that_it_refuses_is_said(source):
    PrometheusSource.objects.filter(pk=source.pk).update(selector='job=~"("')
    code, _, detail = read(source).partition(" ")
    assert code == "query"
    assert detail
    source.refresh_from_db()
    assert (source.error, source.failures) == ("query", 1)
