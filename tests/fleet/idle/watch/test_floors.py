"""What a GPU draws at rest: the lowest of a week, and the lowest while a program held its memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.idle.watch.floors import reckon_floors
from fleet.idle.watch.models import GpuFloor
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuRollupHour
from tests.fleet.idle.watch.machines import GIB, NOW, ago

HOUR = timedelta(hours=1)
SECONDS = {f"{state}_seconds": 0 for state in ("working", "held", "free", "starved", "stalled", "unknown", "stopped")}


@pytest.fixture
def gpu(make_instance, frozen):
    ensure_partitions(now=NOW, since=ago(days=9))
    return make_instance(gpus=1).gpus.get()


def hour(gpu, hours_ago, watts, held_gib=0, **fields):
    GpuRollupHour.objects.create(
        gpu=gpu, bucket_at=NOW.replace(minute=0, second=0) - HOUR * hours_ago, samples=720, coverage=1, power_watts_min=watts,
        power_limit_watts_max=700, memory_used_bytes_min=held_gib * GIB, **SECONDS, **fields,
    )  # fmt: skip


def floor(gpu):
    assert reckon_floors(now=NOW) == 1
    kept = GpuFloor.objects.get(gpu=gpu)
    return kept.watts, kept.held_watts


def test_an_empty_gpu_and_one_that_is_held_rest_at_different_power(gpu):
    hour(gpu, 30, 22.0)
    hour(gpu, 20, 95.0, held_gib=40)
    hour(gpu, 10, 78.0, held_gib=40)
    hour(gpu, 9 * 24, 11.0)
    assert floor(gpu) == (22.0, 78.0)


def test_a_small_gpu_strays_by_more_than_a_quarter_of_what_it_draws(gpu):
    hour(gpu, 30, 10.5)
    hour(gpu, 20, 11.5, held_gib=4)
    assert floor(gpu) == (20.0, 20.0)


def test_what_works_all_the_time_is_no_rest(gpu):
    hour(gpu, 3, 410.0, held_gib=60)
    assert floor(gpu) == (410.0, None)


def test_it_is_reckoned_anew_and_kept_while_nothing_is_told(gpu):
    hour(gpu, 3, 60.0)
    assert floor(gpu) == (60.0, None)
    hour(gpu, 2, 50.0)
    assert floor(gpu) == (50.0, None)
    GpuRollupHour.objects.all().delete()
    assert reckon_floors(now=NOW) == 0
    assert GpuFloor.objects.get(gpu=gpu).watts == 50.0
