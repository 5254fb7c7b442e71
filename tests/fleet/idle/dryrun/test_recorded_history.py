"""Quiet times of machines out of recorded rollups, listings and holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.idle.dryrun.evidence import BUCKET
from fleet.idle.dryrun.history import histories_of
from fleet.idle.policies.covering import JudgedBy
from fleet.idle.verdict.evidence import Mode
from fleet.idle.watch.models import GpuFloor
from fleet.inventory.models import GPU, EnvironmentReport, Hold
from fleet.providers.base import InstanceState
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, RollupProgress
from fleet.telemetry.serving.models import ServingLatest, ServingRollupFiveMinutes
from tests.fleet.idle.dryrun.days import told
from tests.fleet.idle.dryrun.recording import gpu_row, listed, record

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def machine(make_instance):
    ensure_partitions(now=MONDAY + DAY, since=MONDAY - DAY)
    found = make_instance(gpus=2, provider_created_at=MONDAY - 9 * DAY)
    listed(found, MONDAY - 8 * DAY, provider_started_at=MONDAY - 9 * DAY)
    return found


def looked_at(*machines, way=JudgedBy(), end=MONDAY + DAY):  # noqa: B008  # frozen
    ways = {machine.pk: way for machine in machines}
    return histories_of(machines, ways, days=1, now=end)


def quiet(machine, **given):
    [history] = looked_at(machine, **given)
    return [told(one) for one in history.quiet]


def test_rest_of_all_gpus_and_use_of_any(machine):
    end = record(machine, "ww...1..", MONDAY)
    assert quiet(machine, end=end) == [(10, 25, "return"), (30, 40, "now")]


def test_it_is_of_the_whole_machine(machine):
    end = record(machine, "w" + "." * 11, MONDAY)
    [history] = looked_at(machine, end=end)
    assert (history.gpus, history.watched, history.idle) == (2, 12 * BUCKET, 11 * BUCKET)
    assert history.idle_gpu_hours == pytest.approx(11 / 12 * 2)


def test_silence_ends_it(machine):
    end = record(machine, "w..????", MONDAY)
    assert quiet(machine, end=end) == [(5, 15, "unknown")]


def test_what_the_host_does_counts(machine):
    end = record(machine, "....", MONDAY, network_rx_bytes_per_second_p95=3e7)
    assert quiet(machine, end=end) == []


def test_a_host_that_tells_no_disk_is_not_idle(machine):
    end = record(machine, "....", MONDAY, disk_read_bytes_per_second_p95=None)
    assert quiet(machine, end=end) == []


def test_power_is_held_against_each_gpus_own_rest(machine):
    end = record(machine, "....", MONDAY)
    for gpu, watts in zip(machine.gpus.order_by("index"), (70.0, 50.0), strict=True):
        GpuFloor.objects.create(gpu=gpu, watts=watts, reckoned_at=MONDAY)
    assert quiet(machine, end=end) == []
    GpuFloor.objects.update(watts=65.0)
    assert quiet(machine, end=end) == [(0, 20, "now")]


def test_with_memory_held_a_gpu_rests_at_another_power(machine):
    end = record(machine, "....", MONDAY)
    for gpu in machine.gpus.all():
        GpuFloor.objects.create(gpu=gpu, watts=50.0, held_watts=70.0, reckoned_at=MONDAY)
    assert quiet(machine, end=end) == []
    GpuRollupFiveMinutes.objects.update(memory_used_bytes_max=40e9)
    assert quiet(machine, end=end) == [(0, 20, "now")]


def test_another_image_has_to_settle_as_a_start_has(machine):
    EnvironmentReport.objects.create(instance=machine, reported_at=MONDAY + 2 * BUCKET, digest="new", data={})
    end = record(machine, "." * 12, MONDAY)
    assert quiet(machine, end=end) == [(0, 10, "unknown"), (30, 60, "now")]


def test_listings_say_when_it_was_off(machine):
    listed(machine, MONDAY + 3 * BUCKET, state=InstanceState.STOPPED)
    listed(machine, MONDAY + 6 * BUCKET, provider_started_at=MONDAY + 6 * BUCKET)
    end = record(machine, "w..???" + "." * 12, MONDAY)
    # Off, then twenty minutes to settle.
    assert quiet(machine, end=end) == [(5, 15, "off"), (50, 90, "now")]


def test_holds_of_that_time_count_though_they_ended(machine, bob):
    given = {"instance": machine, "kind": "job", "owner": bob, "reason": "vid-ft-88"}
    Hold.objects.create(started_at=MONDAY + 3 * BUCKET, ended_at=MONDAY + 5 * BUCKET, **given)
    Hold.objects.create(started_at=MONDAY - DAY, expires_at=MONDAY + 1 * BUCKET, **given)
    end = record(machine, "." * 8, MONDAY)
    [history] = looked_at(machine, end=end)
    assert [told(one) for one in history.quiet] == [(5, 15, "return"), (25, 40, "now")]
    assert [one.name for one in history.holds] == ["vid-ft-88"] * 2


def test_requests_of_a_served_model(machine):
    endpoint = ServingLatest.objects.create(instance=machine, engine="vllm", port=8000, first_seen_at=MONDAY - DAY)
    for number in range(6):
        asked = 3 if number == 2 else 0
        ServingRollupFiveMinutes.objects.create(
            endpoint=endpoint,
            bucket_at=MONDAY + number * BUCKET,
            samples=30,
            interval_seconds=300.0,
            requests_finished=asked,
            requests_failed=0,
        )
    end = record(machine, "." * 6, MONDAY)
    assert quiet(machine, end=end) == []
    assert quiet(machine, end=end, way=JudgedBy(mode=Mode.SERVING)) == [(0, 10, "return"), (15, 30, "now")]


def test_a_card_that_is_cut_is_judged_by_its_instances(machine):
    whole = machine.gpus.order_by("index").first()
    parts = [
        GPU.objects.create(
            instance=machine, uuid=f"MIG-{number}", index=number, mig_parent_uuid=whole.uuid, mig_profile="3g.40gb"
        )
        for number in (10, 11)
    ]
    end = record(machine, "....", MONDAY)
    GpuRollupFiveMinutes.objects.filter(gpu=whole).update(utilization_percent_max=None, sm_activity_max=None)
    assert quiet(machine, end=end) == [(0, 20, "now")]
    GpuRollupFiveMinutes.objects.filter(gpu=parts[0]).update(utilization_percent_max=50.0)
    assert quiet(machine, end=end) == []


def test_a_rented_gpu_without_a_record_keeps_it_unknown(machine):
    end = record(machine, "....", MONDAY)
    machine.gpu_count = 3
    assert quiet(machine, end=end) == []


def test_rows_of_one_gpu_alone_are_not_all_of_the_machine(machine):
    record(machine, "....", MONDAY)
    first = machine.gpus.order_by("index").first()
    end = MONDAY + 5 * BUCKET
    GpuRollupFiveMinutes.objects.bulk_create([gpu_row(first.pk, MONDAY + 4 * BUCKET, utilization_percent_max=0.0)])
    RollupProgress.objects.update(rolled_until=end)
    assert quiet(machine, end=end) == [(0, 20, "unknown")]


def test_a_machine_of_which_nothing_is_recorded(machine):
    [history] = looked_at(machine)
    assert (history.quiet, history.watched, history.days) == ((), timedelta(), frozenset())


def test_as_many_questions_for_many_machines_as_for_one(machine, make_instance, django_assert_num_queries):
    record(machine, "w..", MONDAY)
    others = [make_instance(name=f"more-{number}", gpus=2) for number in range(4)]
    for other in others:
        listed(other, MONDAY - 8 * DAY, provider_started_at=MONDAY - 9 * DAY)
        record(other, "w..", MONDAY)
    # Two of them begin and end the transaction of the cursor.
    with django_assert_num_queries(10):
        looked_at(machine)
    with django_assert_num_queries(10):
        found = looked_at(machine, *others)
    assert [len(history.quiet) for history in found] == [1] * 5
