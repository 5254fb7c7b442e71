"""Days of samples are packed before they go: charts go on reading them, late samples join them, and no crash loses any."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from fleet.pages.history import state_history
from fleet.pages.machine import MachineView
from fleet.states import GpuState
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import GpuSample, HostSample
from fleet.telemetry.packed import codec, pack
from fleet.telemetry.packed.codec import unpack_hour
from fleet.telemetry.packed.fields import GPU_FIELDS, HOST_FIELDS
from fleet.telemetry.packed.models import GpuHour, HostHour
from fleet.telemetry.packed.pack import PACK_LOCK, days_to_pack, pack_old_days
from fleet.telemetry.partitions import drop_old_partitions, ensure_partitions, existing_partitions
from fleet.telemetry.rollups import sort
from fleet.telemetry.rollups.models import LateBucket
from fleet.telemetry.rollups.roll import LATE_LOCK
from fleet.telemetry.series import TOGETHER, gpu_series, host_series, merged_gpu_series
from fleet.telemetry.state_series import state_series
from fleet.telemetry.tasks import pack_days
from tests.fleet.telemetry.rolling import reporting, store, store_host
from tests.fleet.telemetry.test_partitions import drop_all_of_2031, reader_parameters, rolled_until

DAY = datetime(2031, 3, 14, tzinfo=UTC)
NOON = DAY + timedelta(hours=12)
# The day is over for two days and an hour: nothing of it is taken any more.
DUE = DAY + timedelta(days=3, hours=1, minutes=1)
HOURS = timedelta(hours=1)


@pytest.fixture(autouse=True)
def kept(settings):
    settings.RAW_HISTORY_DAYS = 400


@pytest.fixture
def machine(make_instance, time_machine):
    """Two GPUs and their host, 90 minutes from noon on, which count as rolled up."""
    time_machine.move_to(DUE, tick=False)
    ensure_partitions(now=NOON)
    found = make_instance(gpus=2)
    found.gpus.update(first_seen_at=DAY)
    reporting(found, every=20)
    for gpu, power in zip(found.gpus.order_by("index"), (300.0, 500.0), strict=True):
        store(
            gpu,
            NOON,
            seconds=5400,
            every=20,
            power_watts=[power + step % 7 for step in range(270)],
            utilization_percent=90.0,
            memory_used_bytes=[None if step % 90 == 7 else 60 << 30 for step in range(270)],
            throttle_reasons=4,
            state=GpuState.WORKING,
        )
    store_host(
        found, NOON, seconds=5400, every=20, load1=1.5, devices={"disks": [{"device": "nvme0n1", "read_iops": 7.0}]}
    )
    rolled_until(DUE)
    return found


def days(table: str = "gpu_sample") -> list[str]:
    return [
        one.first.isoformat() for one in existing_partitions() if one.table.name == table and one.first.year == 2031
    ]


def all_samples() -> dict[tuple[int, datetime], dict[str, Any]]:
    """Those that still lie in the day and those that are packed, each once."""
    found: dict[tuple[int, datetime], Any] = {
        (row["gpu_id"], row["sampled_at"]): row for row in GpuSample.objects.values()
    }
    for row in found.values():
        # What only rollups ask, which come before.
        del row["interval_seconds"]
    for row in GpuHour.objects.all():
        hour = unpack_hour(row.packed, GPU_FIELDS)
        assert row.samples == len(hour["sampled_at"])
        for values in zip(*hour.values(), strict=True):
            sample = dict(zip(hour, values, strict=True))
            sample["sampled_at"] = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=sample["sampled_at"])
            key = (row.gpu_id, sample["sampled_at"])
            assert key not in found
            found[key] = {**sample, "gpu_id": row.gpu_id}
    return found


def charts(machine) -> dict[str, Any]:
    ids = list(machine.gpus.order_by("index").values_list("pk", flat=True))
    span: dict[str, Any] = {"since": NOON - HOURS, "until": NOON + 2 * HOURS}
    fields = ["power_watts", "memory_used_bytes", "throttle_reasons", "process_count"]
    return {
        **{
            statistic: gpu_series(gpu_ids=ids, fields=fields, statistic=statistic, **span)
            for statistic in ("mean", "min", "max", "p95")
        },
        "together": merged_gpu_series(gpu_ids=ids, fields=["power_watts"], **span),
        "host": host_series(instance_ids=[machine.pk], fields=["load1"], **span),
        "states": state_series(gpu_ids=ids, max_points=30, **span),
    }


@pytest.mark.django_db
def test_a_packed_day_is_dropped_and_its_charts_stay_as_they_were(machine):
    samples, before = all_samples(), charts(machine)
    assert before["mean"].resolution == "raw"
    drop_old_partitions(now=DUE)
    assert "2031-03-14" in days()
    pack_days()
    assert "2031-03-14" not in days() + days("host_sample")
    assert (GpuSample.objects.count(), GpuHour.objects.count(), HostHour.objects.count()) == (0, 4, 2)
    assert all_samples() == samples
    after = charts(machine)
    assert after == before
    assert any(value is not None for value in after["together"].values[TOGETHER]["power_watts"])


@pytest.mark.django_db
def test_bands_of_states_read_packed_hours(machine):
    def bands():
        view = MachineView(machines_now([machine], now=DUE)[0], DUE)
        return state_history(machines=[view], since=NOON, until=NOON + HOURS, max_points=31)

    before = bands()
    pack_days()
    assert bands() == before
    assert {state for states in before.states.values() for state in states} == {GpuState.WORKING}


@pytest.mark.django_db
def test_the_lists_of_a_machine_are_kept_too(machine):
    pack_days()
    hour = unpack_hour(HostHour.objects.order_by("hour_at")[0].packed, HOST_FIELDS)
    assert set(hour["devices"]) == {'{"disks": [{"device": "nvme0n1", "read_iops": 7.0}]}'}
    assert len(hour["devices"]) == 180


@pytest.mark.django_db
def test_late_samples_of_a_packed_hour_join_it_and_known_ones_stay(machine):
    first, second = machine.gpus.order_by("index")
    pack_old_days(now=DUE)
    kept_before = all_samples()
    late_at = NOON + timedelta(seconds=7)
    GpuSample.objects.create(gpu=first, sampled_at=late_at, power_watts=111.0)
    GpuSample.objects.create(gpu=first, sampled_at=NOON, power_watts=999.0)
    GpuSample.objects.create(gpu=second, sampled_at=NOON + 5 * HOURS, power_watts=222.0)
    done = pack_old_days(now=DUE)
    assert (done.steps, done.samples) == (2, 3)
    found = all_samples()
    assert set(found) - set(kept_before) == {(first.pk, late_at), (second.pk, NOON + 5 * HOURS)}
    assert found[first.pk, late_at]["power_watts"] == 111.0
    assert {key: found[key] for key in kept_before} == kept_before
    hour = unpack_hour(GpuHour.objects.get(gpu=first, hour_at=NOON).packed, GPU_FIELDS)
    assert list(hour["sampled_at"]) == sorted(hour["sampled_at"])


@pytest.mark.django_db
def test_a_run_that_is_killed_between_or_within_steps_loses_nothing(machine, monkeypatch):
    before = all_samples()
    calls = []

    def dies_in_the_second_step(hour, fields, really=codec.pack_hour):
        calls.append(hour)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return really(hour, fields)

    monkeypatch.setattr(pack, "pack_hour", dies_in_the_second_step)
    with pytest.raises(KeyboardInterrupt):
        pack_old_days(now=DUE)
    assert GpuHour.objects.count() == 2
    assert all_samples() == before
    drop_old_partitions(now=DUE)
    assert "2031-03-14" in days()
    pack_old_days(now=DUE)
    drop_old_partitions(now=DUE)
    assert "2031-03-14" not in days()
    assert all_samples() == before


@pytest.mark.django_db
def test_a_spent_budget_ends_the_run_and_the_next_goes_on(machine):
    assert pack_old_days(now=DUE, budget_seconds=0).steps == 1
    assert [day.name for day in days_to_pack(now=DUE)] == ["gpu_sample_20310314", "host_sample_20310314"]
    assert pack_old_days(now=DUE).steps == 2
    assert days_to_pack(now=DUE) == []


@pytest.mark.django_db
def test_a_day_is_packed_only_when_it_is_due_and_rolled_up(machine):
    assert days_to_pack(now=DUE - timedelta(minutes=2)) == []
    late = LateBucket.objects.create(instance=machine, bucket_at=NOON, bucket_seconds=300)
    assert days_to_pack(now=DUE) == []
    late.delete()
    assert len(days_to_pack(now=DUE)) == 2


@pytest.mark.django_db
def test_without_the_setting_nothing_is_packed_and_what_is_packed_stays(machine, settings):
    pack_old_days(now=DUE)
    packed = GpuHour.objects.count()
    GpuSample.objects.create(gpu=machine.gpus.first(), sampled_at=NOON + 3 * HOURS)
    settings.RAW_HISTORY_DAYS = 0
    pack_days()
    assert "2031-03-14" not in days()
    drop_old_partitions(now=DUE + timedelta(days=4000))
    assert GpuHour.objects.count() == packed
    assert charts(machine)["mean"].resolution == "raw"


@pytest.mark.django_db
def test_packed_weeks_go_when_the_setting_says_so(machine, settings):
    settings.RAW_HISTORY_DAYS = 10
    pack_old_days(now=DUE)
    # The week ends on the 17th at midnight.
    end = datetime(2031, 3, 17, tzinfo=UTC) + timedelta(days=10, hours=1)
    drop_old_partitions(now=end - timedelta(seconds=1))
    assert GpuHour.objects.count() == 4
    drop_old_partitions(now=end)
    assert (GpuHour.objects.count(), HostHour.objects.count()) == (0, 0)


@pytest.mark.django_db
def test_where_no_sample_is_kept_rollups_answer(machine, settings):
    settings.RAW_HISTORY_DAYS = 0
    pack_days()
    assert charts(machine)["mean"].resolution == "5min"


@pytest.mark.django_db
def test_too_much_for_one_chart_is_answered_from_rollups(machine, monkeypatch):
    pack_old_days(now=DUE)
    monkeypatch.setattr("fleet.telemetry.packed.read.MOST_HOURS", 7)
    assert charts(machine)["mean"].resolution == "5min"
    assert charts(machine)["host"].resolution == "raw"


@pytest.mark.django_db
def test_charts_of_now_ask_no_more_than_before(machine, django_assert_num_queries):
    ids = [gpu.pk for gpu in machine.gpus.all()]
    with django_assert_num_queries(4):
        gpu_series(gpu_ids=ids, fields=["power_watts"], since=DUE - HOURS, until=DUE)


@pytest.mark.django_db(transaction=True)
def test_two_workers_a_sorting_and_a_long_read_take_turns(machine, monkeypatch):
    monkeypatch.setattr(sort, "LOCK_TIMEOUT", "50ms")
    with psycopg.connect(**reader_parameters()) as reader:
        reader.execute("SELECT count(*) FROM gpu_sample")
        assert pack_old_days(now=DUE).steps == 1
        assert HostSample.objects.count() == 0
    for lock in (LATE_LOCK, PACK_LOCK):
        with psycopg.connect(**reader_parameters()) as other:
            other.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
            assert pack_old_days(now=DUE).steps == 0
    assert pack_old_days(now=DUE).steps == 2
    assert GpuSample.objects.count() == 0
    drop_all_of_2031()
