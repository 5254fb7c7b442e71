"""Samples that come after their bucket was rolled: only their machine's buckets are rolled again, and none is forgotten."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async

from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.readings import LATE_SECONDS, late_buckets
from fleet.telemetry.rollups import roll
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, GpuRollupHour, HostRollupFiveMinutes, LateBucket
from fleet.telemetry.rollups.roll import GRACE, roll_up
from tests.fleet.telemetry.rolling import store, store_host

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)


@pytest.fixture
def machines(make_instance):
    """Two machines with a GPU each, an hour of theirs rolled up, all but five minutes of the first's."""
    ensure_partitions(now=NOON)
    found = [make_instance(name=name, gpus=1) for name in ("train-01", "train-02")]
    for number, machine in enumerate(found):
        machine.gpus.update(uuid=f"GPU-{number}", first_seen_at=NOON)
        store(machine.gpus.get(), NOON, seconds=1800, every=10, power_watts=100.0)
        store(machine.gpus.get(), NOON + 35 * MINUTES, seconds=1500, every=10, power_watts=100.0)
    roll_up(now=NOON + 60 * MINUTES + GRACE)
    return found


def late(machine, at, seconds=300):
    LateBucket.objects.create(instance=machine, bucket_at=at, bucket_seconds=seconds)


def samples_of(machine, at=NOON + 30 * MINUTES, model=GpuRollupFiveMinutes) -> int:
    return int(model.objects.get(gpu__instance=machine, bucket_at=at).samples)


@pytest.mark.django_db
def test_late_samples_roll_their_buckets_and_hours_again(machines):
    first, second = machines
    for machine in machines:
        store(machine.gpus.get(), NOON + 30 * MINUTES, seconds=300, every=10, power_watts=400.0)
    store_host(first, NOON + 30 * MINUTES, seconds=300, every=10, load1=1.0)
    late(first, NOON + 30 * MINUTES)
    late(first, NOON + 30 * MINUTES)
    assert roll_up(now=NOON + 60 * MINUTES + GRACE).late == 2
    assert (samples_of(first), samples_of(second)) == (30, 0)
    assert HostRollupFiveMinutes.objects.get().samples == 30
    hour = GpuRollupHour.objects.get(gpu__instance=first)
    assert (hour.samples, hour.power_watts_max) == (360, 400.0)
    assert hour.power_watts_avg == pytest.approx((330 * 100 + 30 * 400) / 360)
    assert samples_of(second, NOON, GpuRollupHour) == 330
    assert not LateBucket.objects.exists()


@pytest.mark.django_db
def test_a_late_bucket_that_was_not_rolled_yet_waits_until_it_was(machines):
    first, _ = machines
    late(first, NOON + 60 * MINUTES)
    late(first, NOON + 60 * MINUTES, HOUR.seconds)
    roll_up(now=NOON + 62 * MINUTES)
    assert LateBucket.objects.count() == 2
    roll_up(now=NOON + 65 * MINUTES + GRACE)
    assert list(LateBucket.objects.values_list("bucket_seconds", flat=True)) == [HOUR.seconds] * 2
    roll_up(now=NOON + 120 * MINUTES + GRACE)
    assert not LateBucket.objects.exists()


@pytest.mark.django_db
def test_a_fleet_that_was_cut_off_is_caught_up_in_steps(machines, monkeypatch):
    monkeypatch.setattr(roll, "LATE_AT_ONCE", {FIVE_MINUTES: 3, HOUR: 1})
    for machine in machines:
        for number in range(5):
            late(machine, NOON + 5 * number * MINUTES)
            late(machine, NOON + 5 * number * MINUTES)
    with monkeypatch.context() as patched:
        patched.setattr(roll, "_pass_on", lambda by_start: None)
        assert [roll._roll_late(FIVE_MINUTES) for _ in range(5)] == [3, 3, 3, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_another_worker_at_it_is_left_alone(machines):
    import psycopg

    from tests.fleet.telemetry.test_partitions import drop_all_of_2031, reader_parameters

    late(machines[0], NOON)
    with psycopg.connect(**reader_parameters()) as other:
        for key in (roll.LATE_LOCK, roll.FORWARD_LOCK):
            other.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        rolled = roll_up(now=NOON + timedelta(days=1))
        assert (rolled.steps, rolled.late) == (0, 0)
    assert roll_up(now=NOON + timedelta(hours=2) + GRACE).steps > 0
    drop_all_of_2031()


def test_late_is_what_came_after_its_bucket_might_have_been_rolled():
    now = NOON.timestamp() + 300 + LATE_SECONDS
    before, inside = NOON.timestamp() + 299, NOON.timestamp() + 300
    assert late_buckets({before, inside}, now=now) == {NOON.timestamp()}
    assert late_buckets({before}, now=now - 0.1) == set()
    assert GRACE.total_seconds() >= LATE_SECONDS + 60


@pytest.mark.django_db(transaction=True)
async def test_ingest_names_the_buckets_of_late_samples(reporter, machine):
    hour_ago = time.time() - 3600
    samples = [
        {"at": at, "gpus": [{"uuid": "GPU-a", "state": "ok", "utilization_percent": 97.0, "memory_used_bytes": 1}]}
        for at in (hour_ago, hour_ago + 1, hour_ago + 600, time.time() - 1)
    ]
    assert (await reporter.samples(*samples)).status_code == 200

    def found() -> list[tuple[int, float]]:
        rows = LateBucket.objects.order_by("bucket_at").values_list("instance_id", "bucket_at", "bucket_seconds")
        return [(pk, bucket_at.timestamp()) for pk, bucket_at, seconds in rows if seconds == 300]

    starts = sorted({at // 300 * 300 for at in (hour_ago, hour_ago + 1, hour_ago + 600)})
    assert await sync_to_async(found)() == [(machine.pk, start) for start in starts]
