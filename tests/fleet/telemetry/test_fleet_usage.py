"""Charts of a fleet: percentiles across its GPUs, seconds and power, split, filtered and without a gap between widths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from fleet.states import GpuState
from fleet.telemetry.histogram import mean, percentile
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.fleet_models import (
    UTILIZATION_BINS,
    FleetRollupFiveMinutes,
    FleetRollupHour,
    FleetRollupProgress,
    RollupGroup,
)
from fleet.telemetry.rollups.roll import roll_up
from fleet.telemetry.usage import ALL, NO_PROJECT, OTHERS, Dimension, dimension_values, fleet_usage
from tests.fleet.telemetry.rolling import store

NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
HOURS = timedelta(hours=1)
DAYS = timedelta(days=1)


@given(st.lists(st.integers(0, 100), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_the_nearest_rank_of_what_was_counted(percents, share):
    counts = [percents.count(percent) for percent in range(UTILIZATION_BINS)]
    rank = next(n for n in range(1, len(percents) + 1) if n >= share * len(percents) - 1e-9 * len(percents))
    assert percentile(counts, share) == sorted(percents)[rank - 1]
    assert mean(counts) == pytest.approx(sum(percents) / len(percents))


def test_of_nothing_there_is_no_percentile():
    assert percentile([0] * UTILIZATION_BINS, 0.5) is None
    assert mean([0] * UTILIZATION_BINS) is None


@pytest.fixture
def now(db):
    with time_machine.travel(NOON, tick=False):
        ensure_partitions(now=NOON, since=NOON - 40 * DAYS)
        yield NOON


@pytest.fixture
def make_group(acme, account):
    def make(model="H100", **fields) -> RollupGroup:
        return RollupGroup.objects.create(**{"team": acme, "account": account, "gpu_model": model, **fields})

    return make


def counted(group, at, percents, *, table=FleetRollupFiveMinutes, watts=None, seconds=None) -> None:
    """A row of as many GPUs as there are percents, all of them at work unless told."""
    width = 300 if table is FleetRollupFiveMinutes else 3600
    spent = {f"{state.value}_seconds": 0.0 for state in GpuState}
    spent |= seconds or {"working_seconds": width * len(percents)}
    bins = [percents.count(percent) for percent in range(UTILIZATION_BINS)]
    table.objects.create(
        group=group, bucket_at=at, utilization_gpus=bins, power_watts=watts, power_gpus=watts is not None, **spent
    )


def reached(until=NOON, hours_until=NOON) -> None:
    FleetRollupProgress.objects.create(resolution="5min", rolled_until=until)
    FleetRollupProgress.objects.create(resolution="1h", rolled_until=hours_until)


def usage(acme, span=DAYS, **asked):
    return fleet_usage(team_ids=[acme.pk], since=NOON - span, until=NOON, **{"max_points": 300, **asked})


def test_a_day_has_percentiles_hours_and_power_and_gaps_where_nothing_is_known(acme, make_group, now):
    counted(make_group(), NOON - HOURS, list(range(1, 101)), watts=50_000.0)
    reached()
    found = usage(acme)
    (line,) = found.lines
    assert (found.resolution, found.bucket_seconds, line.key) == ("5min", 300.0, ALL)
    position = found.starts.index(NOON - HOURS)
    assert (line.utilization(0.5)[position], line.utilization(0.95)[position]) == (50, 95)
    assert line.gpu_hours(GpuState.WORKING)[position] == pytest.approx(100 / 12)
    assert line.power_watts()[position] == 50_000.0
    assert line.utilization(0.5)[position + 1] is None
    assert line.gpu_hours(GpuState.WORKING)[position + 1] is None


def test_a_month_merges_hours_and_ends_with_five_minutes(acme, make_group, now):
    """A bucket of several hours: each hour of a GPU weighs as much as twelve of its five minutes."""
    group = make_group()
    for number in range(3):
        counted(group, NOON - (3 - number) * HOURS, [10, 10], table=FleetRollupHour)
    counted(group, NOON, [90, 90])
    reached(until=NOON + timedelta(minutes=5))
    found = fleet_usage(team_ids=[acme.pk], since=NOON - 30 * DAYS, until=NOON + HOURS, max_points=150)
    buckets = [bucket for bucket in found.lines[0].buckets if bucket]
    assert (found.resolution, found.bucket_seconds % 3600) == ("1h", 0)
    assert sum(sum(bucket.seconds.values()) for bucket in buckets) == 2 * (3 * 3600 + 300)
    assert sum(bucket.counts[10] for bucket in buckets) == 12 * 3 * sum(bucket.counts[90] for bucket in buckets)


def test_power_of_groups_adds_up_and_of_hours_is_their_mean(acme, make_group, now):
    one, two = make_group("H100"), make_group("A100")
    for number in (1, 2):
        counted(one, NOON - number * HOURS, [50], table=FleetRollupHour, watts=600.0)
    counted(two, NOON - HOURS, [50], table=FleetRollupHour, watts=400.0)
    reached()
    found = usage(acme, 60 * DAYS, max_points=30)
    assert [value for value in found.lines[0].power_watts() if value is not None] == [800.0]


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (Dimension.GPU_MODEL, ["H100", "A100"]),
        (Dimension.PROJECT, [NO_PROJECT, "project"]),
        (Dimension.TENANCY, ["unknown", "fraction"]),
        (Dimension.PROVIDER, ["manual"]),
    ],
)
def test_split_by_each_dimension_the_largest_first(acme, project, make_group, now, dimension, values):
    counted(make_group("H100", tenancy="unknown"), NOON - HOURS, [10] * 5)
    counted(make_group("A100", tenancy="fraction", project=project), NOON - HOURS, [90] * 2)
    reached()
    lines = usage(acme, split=dimension).lines
    assert [line.key for line in lines] == [str(project.pk) if value == "project" else value for value in values]
    medians = [next(value for value in line.utilization(0.5) if value is not None) for line in lines]
    assert medians == [10, 90][: len(values)]


def test_what_is_beyond_the_largest_is_one_line_at_the_end(acme, make_group, now):
    for number in range(5):
        counted(make_group(f"model {number}"), NOON - HOURS, [number] * (number + 1))
    reached()
    lines = usage(acme, split=Dimension.GPU_MODEL, most=2).lines
    assert [line.key for line in lines] == ["model 4", "model 3", OTHERS]
    assert lines[-1].total().seconds[GpuState.WORKING] == 300 * (1 + 2 + 3)


def test_filters_leave_the_rest_out(acme, project, make_group, now):
    counted(make_group("H100"), NOON - HOURS, [10])
    counted(make_group("H100", project=project), NOON - HOURS, [90])
    reached()
    for wanted, median in (({Dimension.PROJECT: str(project.pk)}, 90), ({Dimension.PROJECT: NO_PROJECT}, 10)):
        (line,) = usage(acme, filters={Dimension.GPU_MODEL: "H100", **wanted}).lines
        assert {value for value in line.utilization(0.5) if value is not None} == {median}
    assert usage(acme, filters={Dimension.GPU_MODEL: "B200"}).lines == []


def test_another_team_is_in_no_line(acme, rival, make_group, account, now):
    counted(make_group("H100", team=rival), NOON - HOURS, [10])
    reached()
    assert usage(acme).lines == []
    assert dimension_values(team_ids=[acme.pk])[Dimension.GPU_MODEL] == []
    assert dimension_values(team_ids=[rival.pk])[Dimension.GPU_MODEL] == ["H100"]


def test_the_queries_do_not_grow_with_the_groups(acme, make_group, now):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            usage(acme, 30 * DAYS, split=Dimension.GPU_MODEL)
        return len(found)

    reached()
    counted(make_group("first"), NOON - HOURS, [10])
    one = queries()
    for number in range(9):
        counted(make_group(f"m{number}"), NOON - HOURS, [10])
    assert queries() == one


def test_what_is_charted_is_what_was_sampled(acme, make_instance, now):
    machine = make_instance(gpus=3, first_seen_at=NOON - DAYS)
    for gpu, percent in zip(machine.gpus.order_by("index"), (20.0, 40.0, 90.0), strict=True):
        store(gpu, NOON - HOURS, seconds=1800, every=10, utilization_percent=percent, power_watts=percent)
    roll_up(now=NOON)
    (line,) = usage(acme).lines
    assert {value for value in line.utilization(0.5) if value is not None} == {40}
    assert {value for value in line.utilization(0.95) if value is not None} == {90}
    assert {value for value in line.power_watts() if value is not None} == {150.0}


@pytest.mark.parametrize("asked", [{"max_points": 1}, {"span": timedelta(0)}])
def test_spans_that_cannot_be_drawn_are_refused(acme, now, asked):
    with pytest.raises(ValueError, match=r"until must be later|max_points must be"):
        usage(acme, asked.pop("span", DAYS), **asked)
