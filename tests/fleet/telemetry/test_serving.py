"""Readings of serving endpoints: stored once, summed in the same moment, newest kept, hostile ones bounded."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from fleet.telemetry.models import HostSample
from fleet.telemetry.serving import write
from fleet.telemetry.serving.models import (
    ServingLatest,
    ServingRollupFiveMinutes,
    ServingRollupHour,
    ServingSample,
)

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def reading(**fields):
    return {"engine": "vllm", "model": MODEL, "port": 8000, **fields}


def grown(finished: int, **fields):
    return reading(interval_seconds=10.0, requests_finished=finished, ttft_count=finished, **fields)


def epoch(moment: datetime | None) -> float:
    assert moment is not None
    return moment.timestamp()


def within_an_hour() -> float:
    """A moment whose next minute lies in the same five minutes, not in the future, and less than two days ago."""
    return time.time() // 3600 * 3600 - 3600 + 60


async def test_every_reading_is_stored_and_the_newest_is_kept(reporter):
    now = time.time()
    first = grown(3, requests_running=2.0, kv_cache_ratio=0.5, ttft_seconds_sum=0.6, ttft_seconds_p95=0.4)
    response = await reporter.samples(
        {"at": now - 10, "serving": [first]}, {"at": now, "serving": [grown(0, requests_running=0.0)]}
    )
    assert response.status_code == 200
    assert response.json()["dropped"] == {}
    assert await ServingSample.objects.acount() == 2
    latest = await ServingLatest.objects.aget()
    assert (latest.engine, latest.model, latest.port) == ("vllm", MODEL, 8000)
    assert epoch(latest.sampled_at) == pytest.approx(now, abs=1e-3)
    assert (latest.requests_running, latest.requests_finished, latest.kv_cache_ratio) == (0.0, 0, None)
    # The idle reading is the newest, but not the last with a request.
    assert epoch(latest.last_request_at) == pytest.approx(now - 10, abs=1e-3)


async def test_rollups_grow_with_what_is_stored_and_a_batch_sent_twice_adds_nothing(reporter):
    at = within_an_hour()
    gauges = [{"requests_running": 1.0}, {"requests_running": 4.0}, {}]
    percentiles = [{"ttft_seconds_p95": 0.2}, {"ttft_seconds_p95": 0.9}, {}]
    for _ in range(2):
        for step in range(3):
            await reporter.samples(
                {"at": at + 10 * step, "serving": [grown(5, ttft_seconds_sum=1.0, **gauges[step], **percentiles[step])]}
            )
    hour = datetime.fromtimestamp(at // 3600 * 3600, UTC)
    for table, start in ((ServingRollupFiveMinutes, hour), (ServingRollupHour, hour)):
        row = await table.objects.aget()
        assert (row.bucket_at, row.samples, row.interval_seconds) == (start, 3, 30.0)
        assert (row.requests_finished, row.ttft_count, row.ttft_seconds_sum) == (15, 15, 3.0)
        assert (row.requests_running_total, row.requests_running_readings) == (5.0, 2)
        assert row.ttft_seconds_p95 == 0.9
        assert (row.prompt_tokens, row.kv_cache_ratio_total, row.kv_cache_ratio_readings) == (None, None, 0)


async def test_a_late_reading_moves_nothing_back_but_its_request_counts(reporter):
    now = time.time()
    await reporter.samples({"at": now - 1, "serving": [grown(0, requests_waiting=0.0)]})
    assert (await ServingLatest.objects.aget()).last_request_at is None
    await reporter.samples({"at": now - 600, "serving": [grown(2)]})
    latest = await ServingLatest.objects.aget()
    assert latest.requests_finished == 0
    assert epoch(latest.last_request_at) == pytest.approx(now - 600, abs=1e-3)


@pytest.mark.parametrize(
    "field", ["requests_running", "requests_waiting", "requests_finished", "prompt_tokens", "generation_tokens"]
)
async def test_each_sign_of_a_request_is_one(reporter, field):
    await reporter.samples({"at": time.time(), "serving": [reading(interval_seconds=10.0, **{field: 1})]})
    assert (await ServingLatest.objects.aget()).last_request_at is not None


async def test_engines_models_and_ports_are_told_apart(reporter):
    rows = [reading(), reading(port=8001), reading(model="other"), reading(engine="tgi")]
    await reporter.samples({"at": time.time(), "serving": rows})
    assert await ServingLatest.objects.acount() == 4
    assert await ServingSample.objects.acount() == 4


async def test_a_sample_of_an_engine_alone_counts_as_none_of_the_host(reporter):
    await reporter.samples({"at": time.time(), "serving": [reading(requests_running=1)]})
    assert await HostSample.objects.acount() == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kv_cache_ratio", 1.5),
        ("requests_running", -1),
        ("requests_running", 1e9),
        ("requests_finished", -3),
        ("requests_finished", 2**60),
        ("prompt_tokens", 10**30),
        ("interval_seconds", 0),
        ("interval_seconds", 1e9),
        ("ttft_seconds_p95", float("inf")),
        ("e2e_seconds_sum", float("nan")),
    ],
)
async def test_a_value_that_cannot_be_is_dropped_and_the_rest_kept(reporter, field, value):
    told = {"generation_tokens": 7, field: value}
    response = await reporter.samples({"at": time.time(), "serving": [reading(**told)]})
    assert response.status_code == 200
    assert response.json()["dropped"] == {field: 1}
    sample = await ServingSample.objects.aget()
    assert (getattr(sample, field), sample.generation_tokens) == (None, 7)


@pytest.mark.parametrize(
    "row",
    [
        {"engine": "<b>"},
        {"engine": ""},
        {"model": "x"},
        {"engine": "vllm", "port": "8000"},
        {"engine": "vllm", "model": 7},
        {"engine": "vllm", "model": "x" * 5000},
        7,
    ],
)
async def test_what_is_no_reading_is_refused_by_name(reporter, row):
    response = await reporter.samples({"at": time.time(), "serving": [row]})
    assert response.status_code == 422
    assert response.json()["field"].startswith("samples[0].serving[0]") or "engine" in response.json()["detail"]
    assert await ServingLatest.objects.acount() == 0


async def test_more_in_one_sample_than_a_machine_can_have_is_refused(reporter):
    response = await reporter.samples({"at": time.time(), "serving": [reading(port=port) for port in range(65)]})
    assert response.status_code == 422


async def test_names_are_cleaned_and_cut(reporter):
    await reporter.samples({"at": time.time(), "serving": [reading(model="a\x00b\u202e" + "x" * 400)]})
    model = (await ServingLatest.objects.aget()).model
    assert len(model) <= 200
    assert "\x00" not in model
    assert "\u202e" not in model


async def test_a_machine_that_names_models_for_ever_is_bounded(reporter, monkeypatch):
    monkeypatch.setattr(write, "MAX_ENDPOINTS", 3)
    now = time.time()
    for number in range(5):
        response = await reporter.samples({"at": now - number, "serving": [reading(model=f"m{number}")]})
    assert response.json()["dropped"] == {"serving": 1}
    assert await ServingLatest.objects.acount() == 3


async def test_a_day_without_a_partition_is_made(reporter):
    from asgiref.sync import sync_to_async
    from django.db import connection

    def drop() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'serving_sample'::regclass"
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP TABLE {name}")

    await sync_to_async(drop)()
    assert (await reporter.samples({"at": time.time(), "serving": [grown(1)]})).status_code == 200
    assert await ServingSample.objects.acount() == 1
    assert (await ServingRollupHour.objects.aget()).requests_finished == 1


async def test_an_older_agents_batch_is_as_good_as_ever(reporter):
    response = await reporter.samples({"at": time.time(), "host": {"load1": 1.0}})
    assert response.json()["accepted"] == {"gpu": 0, "host": 1, "events": 0}
    assert await ServingLatest.objects.acount() == 0
