"""manage.py telemetry_status, for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command

from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import LateBucket
from fleet.telemetry.rollups.roll import roll_up
from tests.fleet.telemetry.rolling import reporting, store, store_host

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)


@pytest.fixture
def show(db, capsys, time_machine):
    def run(*arguments: str) -> str:
        time_machine.move_to(NOON, tick=False)
        call_command("telemetry_status", *arguments)
        return str(capsys.readouterr().out)

    return run


@pytest.fixture
def measured(make_instance):
    ensure_partitions(now=NOON)
    machine = make_instance(gpus=1)
    machine.gpus.update(first_seen_at=NOON - timedelta(days=9))
    reporting(machine, every=10)
    store(machine.gpus.get(), NOON - timedelta(hours=2), seconds=3600, every=20)
    store_host(machine, NOON - timedelta(hours=2), seconds=3600, every=10, load1=1.0)
    roll_up(now=NOON - timedelta(minutes=50))
    LateBucket.objects.create(instance=machine, bucket_at=NOON - timedelta(hours=2), bucket_seconds=300)
    LateBucket.objects.create(instance=machine, bucket_at=NOON - timedelta(hours=2), bucket_seconds=300)
    return machine


def test_people_read_partitions_lag_and_coverage(show, measured):
    text = show()
    assert "gpu_sample_20310314" in text
    assert "2031-03-10 to 2031-03-17" in text
    assert "kept for 90 days" in text
    assert "rollups of 5min: until 2031-03-14 11:05 UTC, 55 min ago, 1 late to be rolled again\n" in text
    assert "rollups of 1h: until 2031-03-14 11:00 UTC, 1 h 00 min ago\n" in text
    # Half of the expected samples for twelve of thirteen buckets; a silent machine has no rows.
    assert "samples that came in the last 24 h: GPUs 46.2%, machines 100%" in text


def test_programs_read_the_same(show, measured):
    status = json.loads(show("--json"))
    assert {table["name"] for table in status["tables"]} >= {"gpu_sample", "host_rollup_1h"}
    partition = status["tables"][0]["partitions"][0]
    assert set(partition) == {"name", "begins_at", "ends_at", "rows", "bytes"}
    assert partition["bytes"] > 0
    assert [(one["resolution"], one["lag_seconds"], one["late_buckets"]) for one in status["rollups"]] == [
        ("5min", 3300.0, 1),
        ("1h", 3600.0, 0),
    ]
    assert status["gpu_coverage"] == pytest.approx(6 / 13)


def test_before_the_first_rollup_nothing_is_made_up(show):
    text = show()
    assert "rollups of 5min: none yet" in text
    assert "GPUs unknown, machines unknown" in text
