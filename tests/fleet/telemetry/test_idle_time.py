"""busy_at and idle_since: what idle rules read. Only readings that show work, or none, move them; silence never counts as idle."""

from __future__ import annotations

import time

import pytest

from fleet.telemetry.models import GpuLatest
from fleet.telemetry.readings import Activity, activity_of


@pytest.mark.parametrize(
    ("marks", "activity"),
    [
        ([(10, False), (15, False)], Activity(10, None, 10, continues=True)),
        ([(10, True), (15, False)], Activity(10, 10, 15, continues=False)),
        ([(10, False), (15, True)], Activity(10, 15, None, continues=False)),
        ([(10, False), (15, None)], Activity(10, None, None, continues=False)),
        ([(10, False), (15, None), (20, False)], Activity(10, None, 20, continues=False)),
        ([(15, False), (10, True)], Activity(10, 10, 15, continues=False)),
        ([(10, False), (500, False)], Activity(10, None, 500, continues=False)),
    ],
)
def test_the_marks_of_a_batch_fold_into_one_activity(marks, activity):
    assert activity_of(marks) == activity


@pytest.fixture
def reading(reporter):
    """reading(age, percent) is one sample so many seconds ago; returns the latest row."""
    now = time.time()

    async def send(age: float, utilization: float | None, **fields) -> GpuLatest:
        gpu = {"uuid": "GPU-a", "memory_used_bytes": 1, **fields}
        if utilization is not None:
            gpu["utilization_percent"] = utilization
        await reporter.samples({"at": now - age, "gpus": [gpu]})
        latest = await GpuLatest.objects.aget()
        latest.age_of = lambda moment: None if moment is None else round(now - moment.timestamp())  # type: ignore[attr-defined]
        return latest

    return send


pytestmark = pytest.mark.django_db(transaction=True)


async def test_idle_time_goes_on_from_batch_to_batch(reading):
    for age in (60, 50, 40):
        latest = await reading(age, 0.0)
    assert latest.age_of(latest.idle_since) == 60
    assert latest.busy_at is None


async def test_work_ends_it_and_the_next_rest_begins_anew(reading):
    await reading(60, 0.0)
    latest = await reading(50, 80.0)
    assert (latest.idle_since, latest.age_of(latest.busy_at)) == (None, 50)
    latest = await reading(40, 1.0)
    assert (latest.age_of(latest.idle_since), latest.age_of(latest.busy_at)) == (40, 50)


async def test_sm_activity_is_work_too(reading):
    latest = await reading(50, 0.0, sm_activity=0.3)
    assert (latest.idle_since, latest.age_of(latest.busy_at)) == (None, 50)


async def test_what_was_not_read_is_not_idle(reading):
    await reading(60, 0.0)
    latest = await reading(50, None)
    assert latest.idle_since is None
    latest = await reading(40, 0.0)
    assert latest.age_of(latest.idle_since) == 40


async def test_a_lost_gpu_is_not_idle(reading):
    await reading(60, 0.0)
    latest = await reading(50, 0.0, state="lost")
    assert (latest.lost, latest.idle_since) == (True, None)


async def test_silence_breaks_idle_time(reading):
    await reading(600, 0.0)
    latest = await reading(50, 0.0)
    assert latest.age_of(latest.idle_since) == 50


async def test_replayed_work_moves_busy_at_and_shortens_idle_time(reading):
    """The newest batch came first: what filled the gap shows that the GPU worked in it."""
    await reading(110, 0.0)
    await reading(30, 0.0)
    latest = await reading(70, 99.0)
    assert latest.age_of(latest.sampled_at) == 30
    assert latest.age_of(latest.busy_at) == 70
    assert latest.age_of(latest.idle_since) == 30


async def test_replayed_rest_moves_nothing(reading):
    await reading(110, 90.0)
    await reading(30, 0.0)
    latest = await reading(70, 0.0)
    assert (latest.age_of(latest.busy_at), latest.age_of(latest.idle_since)) == (110, 30)
