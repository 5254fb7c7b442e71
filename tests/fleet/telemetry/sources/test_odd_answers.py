"""A Prometheus that answers oddly: what can be used is, the rest is a plain reason on the page, and the next reading backs off."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.telemetry.models import GpuSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.sources import read as reading
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from fleet.telemetry.sources.read import read_source
from tests.fleet.telemetry.sources.conftest import CARD
from tests.fleet.telemetry.store.fake import fake_store

pytestmark = pytest.mark.django_db(transaction=True)

LABELS = {
    "__name__": "DCGM_FI_DEV_GPU_UTIL",
    "gpu": "0",
    "UUID": CARD,
    "modelName": "NVIDIA H100",
    "Hostname": "node-1",
    "instance": "10.0.0.7:9400",
}


@pytest.fixture
def now():
    now = datetime.now(UTC)
    ensure_partitions(now=now)
    return now


@pytest.fixture
def answered(make_source):
    """answered(body): the source after it was read once from a server that answers that."""

    def read(body: bytes) -> PrometheusSource:
        with fake_store() as fake:
            fake.answer = body
            source, claim = make_source(fake.url), uuid.uuid4()
            # Samples of the last minutes are wanted, too.
            since = datetime.now(UTC) - timedelta(minutes=5)
            PrometheusSource.objects.update(claim=claim, read_until=since)
            read_source(source.pk, claim=claim)
        return PrometheusSource.objects.get()

    return read


def matrix(*series: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        matrix({"values": [[1.0, "1"]]}),
        matrix({"metric": LABELS, "value": [1.0, "1"]}),
        matrix({"metric": LABELS, "values": [[1.0, 1]]}),
        matrix({"metric": LABELS, "values": [["NaN", "1"]]}),
        matrix({"metric": LABELS, "values": [[1.0]]}),
        matrix({"metric": {**LABELS, "gpu": 0}, "values": []}),
        matrix("up"),
        b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "1"]}]}}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": {}}}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"a": "\\ud800"}}]}}',
        b'{"status": "success", "data": null}',
        b'{"status": 1}',
        b"[]",
        b'{"data":' + b"[" * 100_000,
    ],
    ids=range(14),
)
def test_what_no_prometheus_says_is_named_and_backs_off(answered, caplog, body):
    source = answered(body)
    assert (source.error, source.failures, source.claim) == ("no_prometheus", 1, None)
    assert source.next_read_at > source.failed_at
    assert caplog.records == []


@pytest.mark.parametrize("moment", [1e30, -1e30, 0.0])
def test_moments_that_were_not_asked_for_are_left_out(answered, now, make_instance, moment):
    make_instance(name="node-1")
    good = now.timestamp() - 60
    later = now.timestamp() + 3_600
    values = [[moment, "70"], [good, "50"], [later, "60"]]
    assert answered(matrix({"metric": LABELS, "values": values})).error == ""
    assert [sample.sampled_at.timestamp() for sample in GpuSample.objects.all()] == [pytest.approx(good, abs=0.001)]


def test_values_that_are_no_numbers_are_left_out(answered, now, make_instance):
    make_instance(name="node-1")
    at = now.timestamp() - 90
    values = [[at, "abc"], [at + 10, "+Inf"], [at + 30, "50"], [at + 60, ""]]
    assert answered(matrix({"metric": LABELS, "values": values})).error == ""
    assert GpuSample.objects.count() == 1


def test_labels_lose_what_no_line_has(answered, now):
    at = now.timestamp() - 60
    hostile = {**LABELS, "Hostname": "node\x00-\u202e1", "modelName": "H\x00100"}
    assert answered(matrix({"metric": hostile, "values": [[at, "50"]]})).error == ""
    assert SourceMachine.objects.get().label == "node-1"


def test_what_nobody_foresaw_is_on_the_page_too(answered, monkeypatch, caplog):
    def surprise(*_args: Any, **_more: Any) -> None:
        raise KeyError("metric")

    monkeypatch.setattr(reading, "pages_of", surprise)
    source = answered(matrix())
    assert (source.error, source.failures) == ("bug", 1)
    assert [record.message for record in caplog.records] == [f"Source {source.pk} could not be read"]
