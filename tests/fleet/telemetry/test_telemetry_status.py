"""manage.py telemetry_status, for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command

from fleet.telemetry.models import HostSample
from fleet.telemetry.packed.pack import pack_old_days
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import LateBucket
from fleet.telemetry.rollups.roll import roll_up
from tests.fleet.telemetry.rolling import reporting, store, store_host
from tests.fleet.telemetry.test_partitions import rolled_until

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)


@pytest.fixture
def show(db, capsys, time_machine):
    def run(*arguments: str, at: datetime = NOON) -> str:
        time_machine.move_to(at, tick=False)
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
    assert "rollups of 1h: until 2031-03-14 11:00 UTC, 1 h ago\n" in text
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


def test_it_says_that_no_history_is_made(show, measured):
    text = show()
    assert "packed history: off (RAW_HISTORY_DAYS)\n" in text
    assert "gpu_hour" not in text


def test_it_shows_what_is_packed_and_what_waits(show, measured, settings):
    settings.RAW_HISTORY_DAYS = 400
    rolled_until(NOON + timedelta(days=3))
    LateBucket.objects.all().delete()
    pack_old_days(now=NOON + timedelta(days=3))
    HostSample.objects.create(instance=measured, sampled_at=NOON - timedelta(hours=1))
    text = show(at=NOON + timedelta(days=3))
    assert "gpu_hour_20310310" in text
    assert "packed history: kept for 400 days; 180 samples of GPUs at " in text
    assert text.rstrip().splitlines()[-2].endswith("; host_sample_20310314 to be packed")
    history = json.loads(show("--json", at=NOON + timedelta(days=3)))["history"]
    assert history == {
        "kept_days": 400,
        "waiting": ["host_sample_20310314"],
        "gpu_samples": 180,
        "host_samples": 360,
    }


def test_before_the_first_rollup_nothing_is_made_up(show):
    text = show()
    assert "rollups of 5min: none yet" in text
    assert "GPUs unknown, machines unknown" in text


def test_it_names_the_store_and_what_should_be_gone(show, measured):
    assert "readings lie in: postgresql (TELEMETRY_STORE)\n" in show()
    assert "kept past their time" not in show()
    later = show(at=NOON + timedelta(days=5))
    overdue = next(line for line in later.splitlines() if line.startswith("kept past their time: "))
    assert "gpu_sample_20310314" in overdue
    assert json.loads(show("--json"))["overdue"] == []
