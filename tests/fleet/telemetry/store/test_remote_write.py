"""What goes over the wire: bytes that others understand, the tenant, a login, requests of bounded size."""

from __future__ import annotations

import time

import httpx
import pytest
from asgiref.sync import async_to_sync

from fleet.telemetry.series import gpu_series
from fleet.telemetry.store import prometheus_writer
from fleet.telemetry.store.base import Samples, StoreError
from fleet.telemetry.store.prometheus_writer import PrometheusWriter
from fleet.telemetry.store.target import query_range
from tests.fleet.telemetry.store.conftest import use
from tests.fleet.telemetry.store.fake import fake_store


def gpu_rows(moments, *, gpu_id=7, utilization=50.0):
    return [(gpu_id, at, 1, None, utilization, *[None] * 20) for at in moments]


async def send(samples: Samples):
    writer = PrometheusWriter()
    try:
        return await writer.send(samples)
    finally:
        await writer.close()


def put(gpus, machines=None):
    return async_to_sync(send)(Samples(gpus, [], (), machines or {7: 3}))


@pytest.fixture
def store(settings):
    with fake_store() as fake:
        use(settings, write=f"{fake.url}/write", read=fake.url)
        yield fake


def test_another_program_reads_what_was_written(settings, receiving_prometheus):
    """Prometheus decodes snappy and protobuf itself."""
    use(settings, write=f"{receiving_prometheus}/api/v1/write", read=receiving_prometheus)
    now = round(time.time(), 3)
    assert not put(gpu_rows([now - 1, now], gpu_id=7101, utilization=87.5), {7101: 3101})
    found = httpx.get(f"{receiving_prometheus}/api/v1/query", params={"query": '{gpu="7101"}[1m]'}).json()
    series = {one["metric"]["__name__"]: one for one in found["data"]["result"]}
    assert set(series) == {"rackrent_gpu_utilization_percent", "rackrent_gpu_state"}
    utilization = series["rackrent_gpu_utilization_percent"]
    assert utilization["metric"] == {
        "__name__": "rackrent_gpu_utilization_percent",
        "gpu": "7101",
        "machine": "3101",
        "reading": "utilization_percent",
    }
    assert utilization["values"] == [[pytest.approx(now - 1), "87.5"], [pytest.approx(now), "87.5"]]
    assert series["rackrent_gpu_state"]["metric"]["state"] == "working"


def test_the_tenant_and_the_token_go_with_every_request(settings, store):
    settings.TELEMETRY_TENANT, settings.TELEMETRY_BEARER_TOKEN = "fleet-1", "sesame"
    put(gpu_rows([1.0]))
    query_range("up", start=0.0, end=60.0, step=60)
    assert [path for path, _, _ in store.asked] == ["/write", "/api/v1/query_range"]
    for _, headers, _ in store.asked:
        assert headers["x-scope-orgid"] == "fleet-1"
        assert headers["authorization"] == "Bearer sesame"
    written = store.asked[0][1]
    assert written["content-encoding"] == "snappy"
    assert written["x-prometheus-remote-write-version"] == "0.1.0"


def test_a_login_is_sent_where_there_is_no_token(settings, store):
    settings.TELEMETRY_USER, settings.TELEMETRY_PASSWORD = "rackrent", "sesame"
    put(gpu_rows([1.0]))
    assert store.asked[0][1]["authorization"] == "Basic cmFja3JlbnQ6c2VzYW1l"


def test_no_tenant_is_sent_where_none_is_set(store):
    put(gpu_rows([1.0]))
    assert not {"x-scope-orgid", "authorization"} & set(store.asked[0][1])


def test_a_large_group_is_several_requests_and_a_gpu_in_one_of_them(store, monkeypatch):
    monkeypatch.setattr(prometheus_writer, "MAX_VALUES", 10)
    rows = [row for gpu_id in range(1, 7) for row in gpu_rows([1.0, 2.0], gpu_id=gpu_id)]
    put(rows, dict.fromkeys(range(1, 7), 3))
    assert len(store.asked) == 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "answer"), [(503, b"no"), (200, b"<html>"), (422, b'{"status":"error","error":"too many samples"}')]
)
def test_a_store_that_cannot_answer_is_no_gap(store, make_instance, status, answer):
    from datetime import UTC, datetime, timedelta

    gpu = make_instance(gpus=1).gpus.get()
    store.status, store.answer = status, answer
    now = datetime.now(UTC)
    with pytest.raises(StoreError, match=str(status)):
        gpu_series(gpu_ids=[gpu.pk], fields=["power_watts"], since=now - timedelta(hours=1), until=now)


def test_a_store_that_is_away_is_said_so(settings):
    use(settings, write="http://127.0.0.1:9/write", read="http://127.0.0.1:9")
    with pytest.raises(StoreError, match="cannot be reached"):
        query_range("up", start=0.0, end=60.0, step=60)
