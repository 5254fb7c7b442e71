"""Rolling up: what a row holds, once and only once, and how a job that was down catches up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from fleet.inventory.models import GPU, Observation
from fleet.states import GpuState
from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups import roll
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR
from fleet.telemetry.rollups.models import (
    GpuRollupFiveMinutes,
    GpuRollupHour,
    HostRollupFiveMinutes,
    HostRollupHour,
    RollupProgress,
)
from fleet.telemetry.rollups.roll import GRACE, roll_up
from tests.fleet.telemetry.rolling import reporting, seconds_in, store, store_host

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
HOURS = timedelta(hours=1)
MINUTES = timedelta(minutes=1)


@pytest.fixture
def machine(make_instance):
    ensure_partitions(now=NOON)
    found = make_instance(gpus=1, first_seen_at=NOON - timedelta(days=9))
    found.gpus.update(first_seen_at=NOON - timedelta(days=9))
    reporting(found, every=10)
    return found


@pytest.fixture
def gpu(machine):
    return machine.gpus.get()


def listed(machine, at, state):
    Observation.objects.create(
        instance=machine, seen_at=at, state=state, billing="full", currency="USD", rule_version=1
    )


@given(st.integers(10**9, 4 * 10**9))
def test_buckets_lie_on_the_grid_of_utc(epoch):
    moment = datetime.fromtimestamp(epoch, UTC)
    for resolution in (FIVE_MINUTES, HOUR):
        start = resolution.floor(moment)
        assert start <= moment < start + resolution.width
        assert (start.minute * 60 + start.second) % resolution.seconds == start.microsecond == 0


@pytest.mark.django_db
def test_a_row_holds_extremes_mean_and_percentile_of_its_samples(gpu):
    store(gpu, NOON, seconds=300, every=10, power_watts=[float(number) for number in range(1, 31)], throttle_reasons=4)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    row = GpuRollupFiveMinutes.objects.get(gpu=gpu, bucket_at=NOON)
    assert (row.samples, row.coverage) == (30, 1.0)
    # The nearest rank: 95 % of 30 samples are 28.5, so the 29th.
    assert (row.power_watts_min, row.power_watts_avg, row.power_watts_max, row.power_watts_p95) == (1, 15.5, 30, 29)
    assert row.utilization_percent_avg is None
    assert row.throttle_reasons == 4


@pytest.mark.django_db
def test_a_machine_has_rows_too(machine):
    store_host(machine, NOON, seconds=600, every=20, cpu_percent=25.0)
    roll_up(now=NOON + HOURS + GRACE)
    assert [row.cpu_percent_p95 for row in HostRollupFiveMinutes.objects.all()] == [25.0, 25.0]
    row = HostRollupHour.objects.get()
    assert (row.samples, row.cpu_percent_avg) == (30, 25.0)
    assert row.coverage == pytest.approx(300 / 3600)


@pytest.mark.django_db
def test_a_bucket_is_rolled_when_it_is_over_and_not_before(gpu):
    store(gpu, NOON, seconds=300, every=10, power_watts=1.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE - timedelta(seconds=1))
    assert not GpuRollupFiveMinutes.objects.exists()
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    assert [row.bucket_at for row in GpuRollupFiveMinutes.objects.all()] == [NOON]
    assert not GpuRollupHour.objects.exists()


@pytest.mark.django_db
def test_rolled_twice_is_the_same_rows(gpu):
    store(gpu, NOON, seconds=3600, every=10, power_watts=[float(number % 7) for number in range(360)])
    store_host(gpu.instance, NOON, seconds=3600, every=10, load1=1.0)
    roll_up(now=NOON + HOURS + GRACE)
    models = (GpuRollupFiveMinutes, GpuRollupHour, HostRollupFiveMinutes, HostRollupHour)
    before = [list(model.objects.order_by("bucket_at").values()) for model in models]
    RollupProgress.objects.update(rolled_until=NOON)
    assert roll_up(now=NOON + HOURS + GRACE).steps == 13
    assert [list(model.objects.order_by("bucket_at").values()) for model in models] == before
    assert len(before[0]) == 12


@pytest.mark.django_db
def test_nothing_is_lost_when_samples_are_gone_by_the_time_of_a_second_roll(gpu):
    store(gpu, NOON, seconds=300, every=10, power_watts=5.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE gpu_sample")
    RollupProgress.objects.update(rolled_until=NOON)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    assert GpuRollupFiveMinutes.objects.get().samples == 30


@pytest.mark.django_db
def test_seconds_in_states_add_up_to_the_bucket_and_silence_is_unknown(gpu):
    store(gpu, NOON, seconds=100, every=10, state=GpuState.WORKING)
    store(gpu, NOON + timedelta(seconds=100), seconds=50, every=10, state=GpuState.HELD_IDLE)
    store(gpu, NOON + timedelta(seconds=150), seconds=20, every=10, state=None)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    row = GpuRollupFiveMinutes.objects.get()
    assert row.coverage == pytest.approx(170 / 300)
    assert seconds_in(row) == pytest.approx({GpuState.WORKING: 100, GpuState.HELD_IDLE: 50, GpuState.UNKNOWN: 150})


@pytest.mark.django_db
def test_silence_of_a_machine_that_was_listed_as_off_is_stopped(machine, gpu):
    listed(machine, NOON - HOURS, "running")
    listed(machine, NOON + 2 * MINUTES, "stopped")
    listed(machine, NOON + 4 * MINUTES, "running")
    listed(machine, NOON + 11 * MINUTES, "stopped")
    store(gpu, NOON, seconds=100, every=10)
    roll_up(now=NOON + 20 * MINUTES + GRACE)
    first, second, third, fourth = GpuRollupFiveMinutes.objects.order_by("bucket_at")
    assert seconds_in(first) == pytest.approx({GpuState.WORKING: 100, GpuState.STOPPED: 120, GpuState.UNKNOWN: 80})
    assert seconds_in(second) == {GpuState.UNKNOWN: 300}
    assert seconds_in(third) == pytest.approx({GpuState.UNKNOWN: 60, GpuState.STOPPED: 240})
    assert seconds_in(fourth) == {GpuState.STOPPED: 300}
    assert (fourth.samples, fourth.coverage, fourth.power_watts_avg) == (0, 0, None)


@pytest.mark.django_db
def test_a_sample_stands_for_the_interval_that_it_was_taken_at(machine, gpu):
    """Samples of a slower time stay whole when the agent is made faster, and so does what was made slower on purpose."""
    store(gpu, NOON, seconds=300, every=60, interval_seconds=60)
    store(gpu, NOON + 5 * MINUTES, seconds=300, every=100, interval_seconds=60)
    store(gpu, NOON + 10 * MINUTES, seconds=300, every=100)
    store_host(machine, NOON, seconds=300, every=100, interval_seconds=50)
    Agent.objects.update(interval_seconds=5)
    roll_up(now=NOON + 15 * MINUTES + GRACE)
    told, thin, untold = GpuRollupFiveMinutes.objects.order_by("bucket_at")
    assert seconds_in(told) == {GpuState.WORKING: 300}
    assert seconds_in(thin) == pytest.approx({GpuState.WORKING: 180, GpuState.UNKNOWN: 120})
    assert seconds_in(untold) == pytest.approx({GpuState.WORKING: 15, GpuState.UNKNOWN: 285})
    assert HostRollupFiveMinutes.objects.get().coverage == pytest.approx(0.5)


@pytest.mark.django_db
def test_an_agent_that_is_silent_does_not_set_the_pace_of_an_exporter(machine, gpu):
    Agent.objects.update(interval_seconds=5, batch_at=NOON - HOURS)
    ScrapeTarget.objects.create(instance=machine, url="http://127.0.0.1:9400/metrics", interval_seconds=30)
    store(gpu, NOON, seconds=300, every=30)
    store(gpu, NOON + 5 * MINUTES, seconds=300, every=30)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    Agent.objects.update(batch_at=NOON + 9 * MINUTES)
    roll_up(now=NOON + 10 * MINUTES + GRACE)
    shares = GpuRollupFiveMinutes.objects.order_by("bucket_at").values_list("coverage", flat=True)
    assert list(shares) == [1.0, pytest.approx(50 / 300)]


@pytest.mark.django_db
def test_more_samples_than_expected_cover_no_more_than_all(gpu):
    store(gpu, NOON, seconds=300, every=2, state=GpuState.FREE)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    row = GpuRollupFiveMinutes.objects.get()
    assert (row.samples, row.coverage) == (150, 1.0)
    assert seconds_in(row) == {GpuState.FREE: 300}


@pytest.mark.django_db
def test_a_gpu_that_was_not_there_has_no_row(machine, gpu):
    store(gpu, NOON, seconds=600, every=10)
    GPU.objects.create(instance=machine, uuid="GPU-later", first_seen_at=NOON + 6 * MINUTES)
    GPU.objects.create(instance=machine, uuid="GPU-gone", first_seen_at=NOON - HOURS, removed_at=NOON - MINUTES)
    roll_up(now=NOON + 10 * MINUTES + GRACE)
    rows = GpuRollupFiveMinutes.objects.order_by("bucket_at", "gpu_id").values_list("gpu__uuid", "bucket_at")
    assert list(rows) == [(gpu.uuid, NOON), (gpu.uuid, NOON + 5 * MINUTES), ("GPU-later", NOON + 5 * MINUTES)]


@pytest.mark.django_db
def test_three_days_of_downtime_are_caught_up_in_small_steps(gpu, monkeypatch):
    """Every step is a transaction of its own, and a run that is cut short goes on where it stopped."""
    monkeypatch.setattr(roll, "CHUNK_GPU_SECONDS", 3600)
    GPU.objects.create(instance=gpu.instance, uuid="GPU-b", index=1, first_seen_at=NOON - timedelta(days=9))
    store(gpu, NOON, seconds=3600, every=60, power_watts=3.0)
    later = NOON + timedelta(days=3)
    assert roll_up(now=later + GRACE, budget_seconds=0).steps == 1
    assert RollupProgress.objects.get(resolution="5min").rolled_until == NOON + 5 * MINUTES
    rolled = roll_up(now=later + GRACE)
    # A five-minute step takes 12 GPUs here, an hour's step one.
    assert rolled.steps == 3 * 24 * 12 - 1 + 3 * 24 * 2
    assert GpuRollupFiveMinutes.objects.count() == 2 * 3 * 24 * 12
    assert GpuRollupHour.objects.filter(gpu=gpu, power_watts_avg=3.0).count() == 1
    assert set(RollupProgress.objects.values_list("rolled_until", "next_gpu_id")) == {(later, 0)}


@pytest.mark.django_db
def test_an_hour_that_is_half_done_goes_on_with_the_next_gpu(gpu, monkeypatch):
    monkeypatch.setattr(roll, "CHUNK_GPU_SECONDS", 3600)
    other = GPU.objects.create(instance=gpu.instance, uuid="GPU-b", index=1, first_seen_at=NOON - HOURS)
    store(gpu, NOON, seconds=3600, every=60)
    roll_up(now=NOON + GRACE)
    progress = RollupProgress.objects.filter(resolution="1h")
    assert roll._step_forward(HOUR, NOON + HOURS + GRACE)
    assert progress.get().next_gpu_id == other.pk
    assert list(GpuRollupHour.objects.values_list("gpu_id", flat=True)) == [gpu.pk]
    assert roll._step_forward(HOUR, NOON + HOURS + GRACE)
    assert (progress.get().next_gpu_id, progress.get().rolled_until) == (0, NOON + HOURS)
    assert GpuRollupHour.objects.count() == 2
    assert not roll._step_forward(HOUR, NOON + HOURS + GRACE)


@pytest.mark.django_db
def test_a_step_costs_the_same_queries_however_many_gpus(gpu):
    def queries(since) -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            roll_up(now=since + 5 * MINUTES + GRACE)
        return len(found)

    store(gpu, NOON, seconds=300, every=10)
    roll_up(now=NOON + GRACE)
    one = queries(NOON)
    GPU.objects.bulk_create(GPU(instance=gpu.instance, uuid=f"GPU-{number}", first_seen_at=NOON) for number in range(9))
    assert queries(NOON + 5 * MINUTES) == one


@pytest.mark.django_db
def test_seconds_always_add_up(gpu):
    for number, state in enumerate(GpuState):
        store(gpu, NOON + number * 7 * MINUTES, seconds=10 * (number * 5 + 1), every=10, state=state)
    roll_up(now=NOON + HOURS + GRACE)
    total = sum(F(f"{state.value}_seconds") for state in GpuState)
    for model, width in ((GpuRollupFiveMinutes, 300), (GpuRollupHour, 3600)):
        assert {round(sum_, 1) for sum_ in model.objects.annotate(total=total).values_list("total", flat=True)} == {
            width
        }
