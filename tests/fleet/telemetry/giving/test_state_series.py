"""Seconds in each state only grow, and a bucket counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.states import GpuState
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuStateTotal, RollupProgress
from fleet.telemetry.rollups.roll import GRACE, roll_up
from fleet.telemetry.rollups.totals import STEP, count_states
from fleet.telemetry.tasks import roll_up_samples
from tests.fleet.telemetry.giving.conftest import series
from tests.fleet.telemetry.rolling import reporting, store

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
TOTAL = "rackrent_gpu_state_seconds_total"


@pytest.fixture
def rented(make_instance):
    """A machine with one GPU that was rolled up to noon, and counted from there."""
    ensure_partitions(now=NOON)
    found = make_instance(gpus=1, first_seen_at=NOON - timedelta(days=1))
    found.gpus.update(first_seen_at=NOON - timedelta(days=1))
    reporting(found, every=10)
    store(found.gpus.get(), NOON - 5 * MINUTES, seconds=300, every=10)
    roll_up(now=NOON + GRACE)
    assert count_states() == 0
    return found


def totals(machine) -> dict[str, float]:
    row = GpuStateTotal.objects.get(gpu__instance=machine)
    return {name: seconds for name, seconds in vars(row).items() if name.endswith("_seconds") and seconds}


def test_each_bucket_counts_once(rented):
    gpu = rented.gpus.get()
    store(gpu, NOON, seconds=300, every=10)
    store(gpu, NOON + 5 * MINUTES, seconds=300, every=10, state=GpuState.FREE)
    for _ in range(2):
        roll_up(now=NOON + 10 * MINUTES + GRACE)
        count_states()
        assert totals(rented) == {"working_seconds": 300, "free_seconds": 300}


def test_it_goes_on_where_it_stopped(rented):
    gpu = rented.gpus.get()
    for number in range(3):
        start = NOON + 5 * number * MINUTES
        store(gpu, start, seconds=300, every=10)
        roll_up(now=start + 5 * MINUTES + GRACE)
        count_states()
    assert totals(rented) == {"working_seconds": 900}


def test_days_without_it_are_caught_up_in_steps(rented):
    later = NOON + 3 * STEP
    ensure_partitions(now=later)
    roll_up(now=later + GRACE)
    assert count_states() == 3
    assert totals(rented) == {"unknown_seconds": STEP.total_seconds() * 3}
    assert RollupProgress.objects.get(resolution="states").rolled_until == later


def test_the_task_that_rolls_up_counts_too(rented, time_machine):
    store(rented.gpus.get(), NOON, seconds=300, every=10)
    time_machine.move_to(NOON + 5 * MINUTES + GRACE)
    roll_up_samples()
    assert totals(rented) == {"working_seconds": 300}


def test_a_gpu_that_is_deleted_takes_its_count_along(rented):
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    count_states()
    rented.gpus.all().delete()
    assert not GpuStateTotal.objects.exists()
    roll_up(now=NOON + 10 * MINUTES + GRACE)
    count_states()


def test_the_page_has_the_states_that_a_gpu_was_in(acme, machine, page_of):
    seconds = {f"{state.value}_seconds": 0.0 for state in GpuState} | {"held_seconds": 600.0, "working_seconds": 300.0}
    GpuStateTotal.objects.create(gpu=machine.gpus.get(index=0), **seconds)
    rows = series(page_of(acme))[TOTAL]
    assert {labels["state"]: value for labels, value in rows} == {"held": 600, "working": 300}


def test_states_of_now_are_counted_by_machine(acme, machine, page_of):
    rows = series(page_of(acme))["rackrent_instance_gpus"]
    assert {labels["state"]: value for labels, value in rows if value} == {"working": 2}
    assert len(rows) == len(GpuState)
