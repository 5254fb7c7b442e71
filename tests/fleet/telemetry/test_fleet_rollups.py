"""Counting a fleet together: what a group's row holds, whose group a GPU belongs to, and how late samples and old rollups get in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

from fleet.inventory.models import GPU
from fleet.states import GpuState
from fleet.teams.models import Project
from fleet.telemetry.partitions import FLEET, ensure_partitions, existing_partitions
from fleet.telemetry.rollups import fleet as counting
from fleet.telemetry.rollups import roll as rolling
from fleet.telemetry.rollups.columns import FIVE_MINUTES
from fleet.telemetry.rollups.fleet_models import (
    FleetRollupFiveMinutes,
    FleetRollupHour,
    FleetRollupProgress,
    RollupGroup,
)
from fleet.telemetry.rollups.models import GpuRollupFiveMinutes, LateBucket, RollupProgress
from fleet.telemetry.rollups.roll import GRACE, roll_up
from tests.fleet.telemetry.rolling import reporting, seconds_in, store

pytestmark = pytest.mark.django_db
NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
HOURS = timedelta(hours=1)


@pytest.fixture
def make_gpus(make_instance):
    """make_gpus("a", 2) are the GPUs of a new machine that has been there for long."""
    ensure_partitions(now=NOON)

    def make(name: str, count: int = 1, **fields) -> list[GPU]:
        since = NOON - timedelta(days=9)
        machine = make_instance(name=name, gpus=count, first_seen_at=since, **fields)
        machine.gpus.update(first_seen_at=since)
        reporting(machine, every=10)
        return list(machine.gpus.order_by("index"))

    return make


def fill(gpu: GPU, percent: float, *, since: datetime = NOON, seconds: int = 300, **values) -> None:
    store(gpu, since, seconds=seconds, every=10, utilization_percent=percent, **values)


def bins(row: FleetRollupFiveMinutes | FleetRollupHour) -> dict[int, int]:
    assert len(row.utilization_gpus) == 101
    return {percent: gpus for percent, gpus in enumerate(row.utilization_gpus) if gpus}


def test_a_row_counts_gpus_by_their_means_and_adds_seconds_and_power(make_gpus):
    one, two, silent = make_gpus("a", 3)
    fill(one, 90.4, power_watts=600.0)
    fill(two, 0.2, power_watts=100.0, state=GpuState.HELD_IDLE)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    row = FleetRollupFiveMinutes.objects.get()
    assert bins(row) == {90: 1, 0: 1}
    assert seconds_in(row) == {GpuState.WORKING: 300, GpuState.HELD_IDLE: 300, GpuState.UNKNOWN: 300}
    assert (row.power_watts, row.power_gpus) == (700.0, 2)
    assert GpuRollupFiveMinutes.objects.filter(gpu=silent, group=row.group).exists()


def test_what_nobody_told_is_no_power_of_zero(make_gpus):
    fill(make_gpus("a")[0], 10.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    assert FleetRollupFiveMinutes.objects.get().power_watts is None


def test_gpus_are_told_apart_by_account_project_model_and_tenancy(make_gpus, project, account, acme):
    make_gpus("plain", gpu_model="")
    make_gpus("project", project=project, gpu_model="H100 SXM")
    make_gpus("shared", gpu_model="H100 SXM", tenancy="fraction")
    make_gpus("alike", 2, gpu_model="H100 SXM", tenancy="fraction")
    roll_up(now=NOON)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    found = set(RollupGroup.objects.values_list("team", "account", "project", "gpu_model", "tenancy"))
    common = (acme.pk, account.pk)
    assert found == {
        (*common, None, "H100 80GB HBM3", "unknown"),
        (*common, project.pk, "H100 SXM", "unknown"),
        (*common, None, "H100 SXM", "fraction"),
    }
    roll_up(now=NOON + 10 * MINUTES + GRACE)
    assert RollupGroup.objects.count() == 3


def test_moving_a_machine_does_not_rewrite_its_past(make_gpus, project, acme):
    gpu = make_gpus("a", project=project)[0]
    fill(gpu, 50.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    other = Project.objects.create(team=acme, name="Speech", slug="speech")
    type(gpu.instance).objects.update(project=other)
    fill(gpu, 50.0, since=NOON + 5 * MINUTES)
    LateBucket.objects.create(instance=gpu.instance, bucket_at=NOON, bucket_seconds=300)
    roll_up(now=NOON + 10 * MINUTES + GRACE)
    rows = FleetRollupFiveMinutes.objects.order_by("bucket_at")
    assert [row.group.project for row in rows] == [project, other]


def test_late_samples_are_counted_again_in_both_widths(make_gpus):
    gpu = make_gpus("a")[0]
    fill(gpu, 80.0, seconds=3600)
    roll_up(now=NOON + HOURS + GRACE)
    other = make_gpus("b")[0]
    fill(other, 20.0, since=NOON + 10 * MINUTES)
    LateBucket.objects.create(instance=other.instance, bucket_at=NOON + 10 * MINUTES, bucket_seconds=300)
    assert roll_up(now=NOON + HOURS + GRACE).late == 2
    assert bins(FleetRollupFiveMinutes.objects.get(bucket_at=NOON + 10 * MINUTES)) == {80: 1, 20: 1}
    assert bins(FleetRollupFiveMinutes.objects.get(bucket_at=NOON)) == {80: 1}
    assert bins(FleetRollupHour.objects.get()) == {80: 1, 20: 1}


def test_counted_twice_is_the_same_rows(make_gpus):
    for number, gpu in enumerate(make_gpus("a", 3)):
        fill(gpu, 30.0 * number, seconds=3600, power_watts=100.0)
    roll_up(now=NOON + HOURS + GRACE)
    tables = (FleetRollupFiveMinutes, FleetRollupHour)
    before = [list(table.objects.order_by("bucket_at").values()) for table in tables]
    FleetRollupProgress.objects.update(rolled_until=NOON)
    roll_up(now=NOON + HOURS + GRACE)
    assert [list(table.objects.order_by("bucket_at").values()) for table in tables] == before
    assert [len(rows) for rows in before] == [12, 1]


def test_rollups_of_before_there_were_groups_are_counted_in_small_steps(make_gpus, monkeypatch):
    monkeypatch.setattr(counting, "CHUNK_ROWS", 4)
    gpu = make_gpus("a", 2)[0]
    fill(gpu, 40.0, seconds=3600)
    roll_up(now=NOON + HOURS + GRACE)
    GpuRollupFiveMinutes.objects.update(group=None)
    FleetRollupFiveMinutes.objects.all().delete()
    FleetRollupProgress.objects.all().delete()
    assert roll_up(now=NOON + HOURS + GRACE, budget_seconds=0).fleet == 1
    assert FleetRollupFiveMinutes.objects.count() == 2
    assert roll_up(now=NOON + HOURS + GRACE).fleet == 5 + 1
    assert FleetRollupFiveMinutes.objects.count() == 12


def test_months_of_rollups_get_partitions_of_the_fleet_and_none_of_samples(make_gpus):
    make_gpus("a")
    old = NOON - timedelta(days=200)
    roll_up(now=NOON)
    before = {one.name for one in existing_partitions()}
    FleetRollupProgress.objects.update(rolled_until=old)
    counting.begin_fleet(now=NOON)
    added = {one for one in existing_partitions() if one.name not in before}
    assert {one.table for one in added} == set(FLEET)
    assert min(one.first for one in added) == old.date().replace(day=1)


def test_late_buckets_that_are_not_counted_yet_wait_for_their_turn(make_gpus):
    gpu = make_gpus("a")[0]
    fill(gpu, 40.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    FleetRollupFiveMinutes.objects.all().delete()
    FleetRollupProgress.objects.update(rolled_until=NOON)
    counting.recount(FIVE_MINUTES, [NOON], [gpu.instance_id])
    assert not FleetRollupFiveMinutes.objects.exists()
    assert RollupProgress.objects.get(resolution="5min").rolled_until == NOON + 5 * MINUTES


def test_a_card_cut_into_instances_counts_by_them_and_draws_power_itself(make_gpus):
    card = make_gpus("a")[0]
    slices = [
        GPU.objects.create(
            instance=card.instance, uuid=f"MIG-{n}", name=card.name, mig_parent_uuid=card.uuid, first_seen_at=NOON
        )
        for n in range(2)
    ]
    fill(card, 0.0, power_watts=400.0)
    for number, one in enumerate(slices):
        fill(one, 60.0 + number)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    row = FleetRollupFiveMinutes.objects.get()
    assert bins(row) == {60: 1, 61: 1}
    assert seconds_in(row) == {GpuState.WORKING: 600}
    assert (row.power_watts, row.power_gpus) == (400.0, 1)


def test_another_team_s_rows_are_left_alone_by_late_samples(make_gpus, rival, account):
    theirs = make_gpus("b", team=rival)[0]
    ours = make_gpus("a")[0]
    fill(ours, 10.0)
    fill(theirs, 70.0)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    FleetRollupFiveMinutes.objects.filter(group__team=rival).update(power_watts=1.0)
    LateBucket.objects.create(instance=ours.instance, bucket_at=NOON, bucket_seconds=300)
    roll_up(now=NOON + 5 * MINUTES + GRACE)
    assert FleetRollupFiveMinutes.objects.get(group__team=rival).power_watts == 1.0
    assert FleetRollupFiveMinutes.objects.count() == 2


def test_counting_months_together_holds_up_no_rollup(make_gpus, monkeypatch):
    """However long there is something to count, what the next minute needs comes before it."""
    (gpu,) = make_gpus("a")
    fill(gpu, 50.0, seconds=3_600)
    monkeypatch.setattr(rolling, "step_fleet", lambda _resolution: True)
    steps = takewhile(lambda done: not done.fleet, rolling._steps(NOON + HOURS + GRACE))
    roll_up(now=NOON, budget_seconds=0)
    assert sum(done.steps for done in steps) == 13
    assert set(RollupProgress.objects.values_list("rolled_until", flat=True)) == {NOON + HOURS}
