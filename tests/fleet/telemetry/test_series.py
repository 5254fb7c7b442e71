"""Series for charts: even buckets, gaps as None, never more points than asked for."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.telemetry.models import GpuSample, HostSample
from fleet.telemetry.series import gpu_series, host_series
from fleet.telemetry.spans import bucket_size
from tests.fleet.telemetry.conftest import enrolled

# A ten-second bucket ends here, so that the newest one has its samples.
NOW = datetime.fromtimestamp(time.time() // 10 * 10, UTC)


@pytest.fixture
def gpu(make_instance):
    return make_instance(gpus=1).gpus.get()


def store(gpu, *, every: float, seconds: float, until=NOW, value=50.0) -> None:
    count = int(seconds / every)
    GpuSample.objects.bulk_create(
        GpuSample(gpu=gpu, sampled_at=until - timedelta(seconds=every * (step + 1)), utilization_percent=value)
        for step in range(count)
    )


@given(st.floats(1, 1e7), st.integers(2, 5000), st.integers(1, 60))
def test_a_bucket_holds_two_readings_and_points_stay_few(span, points, interval):
    bucket = bucket_size(span_seconds=span, max_points=points, interval_seconds=interval)
    assert bucket >= 2 * interval
    assert bucket == 2 * interval or span / bucket <= points - 1


@pytest.mark.django_db
def test_every_bucket_of_the_span_is_there_and_a_gap_is_none(gpu):
    store(gpu, every=5, seconds=300)
    since = NOW - timedelta(seconds=600)
    series = gpu_series(gpu_ids=[gpu.pk], fields=["utilization_percent", "power_watts"], since=since, until=NOW)
    values = series.values[gpu.pk]["utilization_percent"]
    assert series.bucket_seconds == 10.0
    assert series.starts[0] <= since < series.starts[0] + timedelta(seconds=10)
    assert series.starts[-1] < NOW <= series.starts[-1] + timedelta(seconds=10)
    steps = {after - before for before, after in zip(series.starts, series.starts[1:], strict=False)}
    assert steps == {timedelta(seconds=10)}
    assert len(values) == len(series.starts)
    middle = next(number for number, start in enumerate(series.starts) if start >= NOW - timedelta(seconds=300))
    assert values[: middle - 1] == [None] * (middle - 1)
    # What falls into the bucket that is just being filled may not have come yet.
    assert set(values[middle:-1]) == {50.0}
    assert series.values[gpu.pk]["power_watts"] == [None] * len(series.starts)


@pytest.mark.django_db
def test_a_jittering_healthy_machine_has_no_false_gap(gpu):
    for step in range(120):
        jitter = (-1) ** step * 2.4
        moment = NOW - timedelta(seconds=5 * step + 5 + jitter)
        GpuSample.objects.create(gpu=gpu, sampled_at=moment, utilization_percent=1.0)
    series = gpu_series(
        gpu_ids=[gpu.pk],
        fields=["utilization_percent"],
        since=NOW - timedelta(seconds=500),
        until=NOW - timedelta(seconds=20),
    )
    assert None not in series.values[gpu.pk]["utilization_percent"]


@pytest.mark.django_db
def test_buckets_follow_the_slowest_agent(gpu):
    agent, _ = enrolled(gpu.instance)
    agent.interval_seconds = 30
    agent.save()
    series = gpu_series(
        gpu_ids=[gpu.pk], fields=["power_watts"], since=NOW - timedelta(hours=1), until=NOW, max_points=1000
    )
    assert series.bucket_seconds == 60.0


@pytest.mark.django_db
def test_a_long_span_has_no_more_points_than_asked_for(gpu):
    series = gpu_series(
        gpu_ids=[gpu.pk], fields=["power_watts"], since=NOW - timedelta(hours=24), until=NOW, max_points=300
    )
    assert 250 <= len(series.starts) <= 300


@pytest.mark.django_db
def test_values_are_means_per_gpu_and_per_machine(make_instance):
    machine = make_instance(gpus=2)
    first, second = machine.gpus.order_by("index")
    since = datetime.fromtimestamp(NOW.timestamp() // 10 * 10 - 100, UTC)
    for gpu, values in ((first, (10.0, 30.0)), (second, (80.0, 100.0))):
        for offset, value in enumerate(values):
            GpuSample.objects.create(gpu=gpu, sampled_at=since + timedelta(seconds=offset), utilization_percent=value)
    HostSample.objects.create(instance=machine, sampled_at=since, memory_used_bytes=7)
    ids = [first.pk, second.pk]
    series = gpu_series(gpu_ids=ids, fields=["utilization_percent"], since=since, until=NOW)
    assert [series.values[pk]["utilization_percent"][0] for pk in ids] == [20.0, 90.0]
    host = host_series(instance_ids=[machine.pk], fields=["memory_used_bytes"], since=since, until=NOW)
    assert host.values[machine.pk]["memory_used_bytes"][0] == 7.0


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["nothing", "gpu_id", "sampled_at; DROP TABLE gpu_sample", "cpu_percent"])
def test_what_is_no_reading_is_refused_with_those_that_are(gpu, field):
    with pytest.raises(ValueError, match=r"known are .*utilization_percent"):
        gpu_series(gpu_ids=[gpu.pk], fields=[field], since=NOW - timedelta(hours=1), until=NOW)


@pytest.mark.django_db
def test_an_empty_span_is_refused_and_an_empty_list_is_not(gpu):
    with pytest.raises(ValueError, match="until must be later"):
        gpu_series(gpu_ids=[gpu.pk], fields=["power_watts"], since=NOW, until=NOW)
    since = NOW - timedelta(hours=1)
    assert gpu_series(gpu_ids=[], fields=["power_watts"], since=since, until=NOW).values == {}
    assert gpu_series(gpu_ids=[gpu.pk], fields=[], since=since, until=NOW).values == {gpu.pk: {}}


@pytest.mark.django_db
def test_the_number_of_queries_does_not_grow_with_gpus(make_instance, django_assert_num_queries):
    machine = make_instance(gpus=8)
    ids = [gpu.pk for gpu in machine.gpus.all()]
    with django_assert_num_queries(4):
        gpu_series(gpu_ids=ids, fields=["power_watts"], since=NOW - timedelta(hours=1), until=NOW)
