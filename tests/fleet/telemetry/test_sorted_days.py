"""Closed days are rewritten in the order of GPU and time, while late samples still come in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import connection

from fleet.telemetry.models import GpuSample, HostSample
from fleet.telemetry.partitions import ensure_partitions, existing_partitions
from fleet.telemetry.rollups import roll, sort
from fleet.telemetry.rollups.models import LateBucket
from fleet.telemetry.rollups.sort import sort_closed_days
from tests.fleet.telemetry.rolling import store, store_host
from tests.fleet.telemetry.test_partitions import drop_all_of_2031, reader_parameters

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
CLOSED = datetime(2031, 3, 15, 1, tzinfo=UTC)
DAY = "gpu_sample_20310314"


@pytest.fixture
def machine(make_instance):
    """Two GPUs whose samples lie in turns, as they came."""
    ensure_partitions(now=NOON)
    found = make_instance(gpus=2)
    for minute in range(30):
        for gpu in found.gpus.order_by("index"):
            store(gpu, NOON + timedelta(minutes=minute), seconds=60, every=20, power_watts=float(minute))
    store_host(found, NOON, seconds=600, every=20, load1=1.0)
    return found


def in_order() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT gpu_id FROM {DAY} ORDER BY ctid")
        return [pk for (pk,) in cursor.fetchall()]


@pytest.mark.django_db
def test_a_closed_day_is_sorted_once_and_nothing_of_it_changes(machine):
    before = list(GpuSample.objects.order_by("gpu_id", "sampled_at").values())
    assert DAY not in sort_closed_days(now=CLOSED - timedelta(seconds=1))
    assert in_order() != sorted(in_order())
    done = sort_closed_days(now=CLOSED)
    assert {DAY, "host_sample_20310314"} <= set(done)
    assert in_order() == sorted(in_order())
    assert list(GpuSample.objects.order_by("gpu_id", "sampled_at").values()) == before
    assert HostSample.objects.count() == 30
    assert sort_closed_days(now=CLOSED) == []


@pytest.mark.django_db
def test_a_sorted_day_still_takes_each_sample_once(machine):
    gpu = machine.gpus.first()
    sort_closed_days(now=CLOSED)
    count = GpuSample.objects.count()
    GpuSample.objects.bulk_create(
        [GpuSample(gpu=gpu, sampled_at=NOON), GpuSample(gpu=gpu, sampled_at=NOON + timedelta(seconds=1))],
        ignore_conflicts=True,
    )
    assert GpuSample.objects.count() == count + 1
    names = [partition.name for partition in existing_partitions()]
    assert names.count(DAY) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s", [DAY])
        assert sorted("brin" in definition for (definition,) in cursor.fetchall()) == [False, True]


@pytest.mark.django_db
def test_samples_that_come_while_the_copy_is_made_are_in_it(machine, monkeypatch):
    """As ingest does it: the sample and the name of its bucket in one transaction."""
    gpu, copy = machine.gpus.first(), sort._copy
    late_at = NOON + timedelta(hours=3, seconds=7)

    def and_a_late_sample(day):
        copy(day)
        if day.name == DAY:
            GpuSample.objects.create(gpu=gpu, sampled_at=late_at, power_watts=7.0)
            HostSample.objects.create(instance=machine, sampled_at=late_at, load1=1.0)
            LateBucket.objects.create(instance=machine, bucket_at=NOON + timedelta(hours=3), bucket_seconds=300)

    monkeypatch.setattr(sort, "_copy", and_a_late_sample)
    sort_closed_days(now=CLOSED)
    assert GpuSample.objects.get(gpu=gpu, sampled_at=late_at).power_watts == 7.0
    assert HostSample.objects.filter(sampled_at=late_at).count() == 1
    assert LateBucket.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_day_that_somebody_reads_and_a_queue_in_use_are_left_for_the_next_run(machine, monkeypatch):
    monkeypatch.setattr(sort, "LOCK_TIMEOUT", "50ms")
    with psycopg.connect(**reader_parameters()) as reader:
        reader.execute("SELECT count(*) FROM gpu_sample")
        assert DAY not in sort_closed_days(now=CLOSED)
    assert in_order() != sorted(in_order())
    assert GpuSample.objects.count() == 180
    with psycopg.connect(**reader_parameters()) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [roll.LATE_LOCK])
        assert sort_closed_days(now=CLOSED) == []
    assert DAY in sort_closed_days(now=CLOSED)
    drop_all_of_2031()
