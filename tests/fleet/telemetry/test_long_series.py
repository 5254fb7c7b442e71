"""Series over any span: the table follows from the span, points stay few, gaps stay gaps, and the newest is there before it is rolled up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.states import GpuState
from fleet.telemetry.models import GpuSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, RAW, RESOLUTIONS
from fleet.telemetry.rollups.models import RollupProgress
from fleet.telemetry.rollups.roll import roll_up
from fleet.telemetry.series import TOGETHER, gpu_series, host_series, merged_gpu_series
from fleet.telemetry.spans import Span, choose_resolution, span_of
from fleet.telemetry.state_series import state_series
from tests.fleet.telemetry.rolling import reporting, store, store_host

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
HOURS, DAYS = timedelta(hours=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def gpu(make_instance, time_machine):
    time_machine.move_to(NOON, tick=False)
    ensure_partitions(now=NOON)
    machine = make_instance(gpus=1)
    machine.gpus.update(first_seen_at=NOON - 9 * DAYS)
    reporting(machine, every=60)
    return machine.gpus.get()


def busy(gpu, since, *, hours=1, value=50.0, state=GpuState.WORKING):
    store(gpu, since, seconds=int(hours * 3600), every=60, utilization_percent=value, state=state)


def asked(gpu, span, **more):
    return gpu_series(gpu_ids=[gpu.pk], fields=["utilization_percent"], since=NOON - span, until=NOON, **more)


def values(gpu, span, **more):
    return asked(gpu, span, **more).values[gpu.pk]["utilization_percent"]


@pytest.mark.parametrize(
    ("span", "resolution"),
    [(HOURS, RAW), (6 * HOURS, RAW), (7 * HOURS, FIVE_MINUTES), (3 * DAYS, FIVE_MINUTES), (3 * DAYS + HOURS, HOUR)],
)
def test_the_span_chooses_the_table(span, resolution):
    assert choose_resolution(since=NOON - span, until=NOON, now=NOON) == resolution


@pytest.mark.django_db
def test_what_is_kept_of_its_beginning_chooses_too():
    assert choose_resolution(since=NOON - 3 * DAYS, until=NOON - 3 * DAYS + HOURS, now=NOON) == FIVE_MINUTES
    assert choose_resolution(since=NOON - 91 * DAYS, until=NOON - 91 * DAYS + HOURS, now=NOON) == HOUR


@given(
    st.floats(0.001, 5e7),
    st.floats(1e9, 4e9),
    st.integers(2, 5000),
    st.integers(1, 900),
)
def test_there_are_never_more_points_than_asked_for(seconds, since, points, interval):
    start = EPOCH + timedelta(seconds=since)
    until = start + timedelta(seconds=seconds)
    if until == start:
        return
    span: Span = span_of(since=start, until=until, now=until, max_points=points, interval_seconds=interval)
    assert 1 <= span.count <= points
    assert span.starts[0] <= start < span.starts[0] + timedelta(seconds=span.bucket)
    assert span.starts[-1] < until <= span.starts[-1] + timedelta(seconds=span.bucket)
    assert span.resolution == RAW or span.bucket % span.resolution.seconds == 0


@pytest.mark.django_db
def test_too_few_points_are_refused(gpu):
    with pytest.raises(ValueError, match="max_points must be 2"):
        asked(gpu, HOURS, max_points=1)


@pytest.mark.django_db
@pytest.mark.parametrize("span", [2 * HOURS, 24 * HOURS, 7 * DAYS])
def test_a_gap_is_a_gap_at_every_resolution(gpu, span):
    """Of the last hours the middle one is missing, and so is all before."""
    busy(gpu, NOON - 2.5 * HOURS, hours=0.5)
    busy(gpu, NOON - HOURS)
    if span > 6 * HOURS:
        roll_up(now=NOON)
    series = asked(gpu, span)
    found = series.values[gpu.pk]["utilization_percent"]
    known = {start for start, value in zip(series.starts, found, strict=True) if value is not None}
    width = timedelta(seconds=series.bucket_seconds)
    missing = [start for start in series.starts if start >= NOON - 2 * HOURS and start + width <= NOON - HOURS]
    assert missing
    assert not known & set(missing)
    assert all(start in known for start in series.starts if start >= NOON - HOURS)
    assert not any(start + width <= NOON - 3 * HOURS for start in known)
    assert {value for value in found if value is not None} == {50.0}


@pytest.mark.django_db
@pytest.mark.parametrize("span", [12 * HOURS, 7 * DAYS])
def test_what_is_not_rolled_up_yet_comes_from_finer_tables(gpu, span):
    busy(gpu, NOON - 3 * HOURS, hours=3, value=[float(minute) for minute in range(180)])
    everything = values(gpu, span)
    roll_up(now=NOON - HOURS)
    assert RollupProgress.objects.get(resolution="1h").rolled_until == NOON - 2 * HOURS
    # Rollups keep four bytes of a mean.
    pairs = list(zip(values(gpu, span), everything, strict=True))
    assert all(now == before or now == pytest.approx(before, rel=1e-6) for now, before in pairs)
    assert values(gpu, span)[-1] is not None


@pytest.mark.django_db
def test_rollups_are_what_a_long_series_reads(gpu):
    busy(gpu, NOON - 5 * HOURS, hours=4)
    roll_up(now=NOON)
    GpuSample.objects.all().delete()
    assert [value for value in values(gpu, 7 * HOURS) if value] == [50.0] * 48
    assert [value for value in values(gpu, 30 * DAYS) if value] == [50.0] * 3


@pytest.mark.django_db
def test_the_answer_says_what_was_read(gpu):
    assert [asked(gpu, span).resolution for span in (HOURS, DAYS, 7 * DAYS)] == [one.name for one in RESOLUTIONS]
    assert asked(gpu, DAYS).percentile_of is None
    assert asked(gpu, HOURS, statistic="p95").percentile_of == "samples"
    assert asked(gpu, DAYS, statistic="p95").percentile_of == "5min"


@pytest.mark.django_db
@pytest.mark.parametrize("rolled", [False, True])
def test_each_statistic_over_samples_and_over_rollups(gpu, rolled):
    busy(gpu, NOON - HOURS, value=[float(minute) for minute in range(60)])
    if rolled:
        roll_up(now=NOON + 5 * HOURS)
    found = {name: values(gpu, 7 * DAYS, statistic=name)[-1] for name in ("mean", "min", "max", "p95")}
    assert found == {"mean": 29.5, "min": 0.0, "max": 59.0, "p95": 56.0}


@pytest.mark.django_db
def test_a_mean_over_rollups_weighs_them_by_their_samples(gpu):
    busy(gpu, NOON - 24 * HOURS, hours=1, value=100.0)
    busy(gpu, NOON - 23 * HOURS, hours=0.5, value=10.0)
    roll_up(now=NOON + HOURS)
    series = asked(gpu, 7 * DAYS, max_points=8)
    assert series.bucket_seconds == DAYS.total_seconds()
    assert [value for value in series.values[gpu.pk]["utilization_percent"] if value] == [70.0]


@pytest.mark.django_db
def test_bits_are_kept_however_long_ago_they_were_set(gpu):
    store(gpu, NOON - HOURS, seconds=1800, every=60, throttle_reasons=4)
    store(gpu, NOON - 0.5 * HOURS, seconds=1800, every=60, throttle_reasons=64)
    roll_up(now=NOON + 5 * HOURS)
    series = gpu_series(gpu_ids=[gpu.pk], fields=["throttle_reasons"], since=NOON - 7 * DAYS, until=NOON)
    assert series.values[gpu.pk]["throttle_reasons"][-1] == 68.0


@pytest.mark.django_db
def test_machines_have_long_series_too(gpu):
    store_host(gpu.instance, NOON - HOURS, seconds=3600, every=60, cpu_percent=30.0)
    roll_up(now=NOON + 5 * HOURS)
    series = host_series(instance_ids=[gpu.instance_id], fields=["cpu_percent"], since=NOON - 7 * DAYS, until=NOON)
    assert series.values[gpu.instance_id]["cpu_percent"][-1] == 30.0


@pytest.mark.django_db
def test_several_gpus_can_be_one_line(gpu, make_instance):
    other = make_instance(name="other", gpus=1).gpus.get()
    busy(gpu, NOON - HOURS, value=10.0)
    busy(other, NOON - HOURS, value=90.0)
    roll_up(now=NOON + 5 * HOURS)
    span: dict[str, Any] = {"fields": ["utilization_percent"], "since": NOON - 7 * DAYS, "until": NOON}
    found = {
        name: merged_gpu_series(gpu_ids=[gpu.pk, other.pk], statistic=name, **span).values[TOGETHER]
        for name in ("mean", "max")
    }
    assert found["mean"]["utilization_percent"][-1] == 50.0
    assert found["max"]["utilization_percent"][-1] == 90.0


@pytest.mark.django_db
def test_seconds_in_states_come_from_rollups_and_then_from_samples(gpu):
    busy(gpu, NOON - 24 * HOURS, state=GpuState.HELD_IDLE)
    roll_up(now=NOON - 2 * HOURS)
    busy(gpu, NOON - HOURS, state=GpuState.WORKING)
    series = state_series(gpu_ids=[gpu.pk], since=NOON - 25 * HOURS, until=NOON, max_points=26)
    seconds = series.seconds[gpu.pk]
    assert series.resolution == "5min"
    assert seconds[0] is None
    assert seconds[1] == pytest.approx({GpuState.HELD_IDLE: 3600})
    assert seconds[2] == pytest.approx({GpuState.UNKNOWN: 3600})
    assert seconds[-1] == pytest.approx({GpuState.WORKING: 3600})
