"""What every engine for readings does alike: the same samples give the same figures, gaps and states, whichever keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.states import GpuState
from fleet.telemetry.series import TOGETHER, gpu_series, host_series, merged_gpu_series
from fleet.telemetry.state_series import state_series
from tests.fleet.telemetry.rolling import reporting
from tests.fleet.telemetry.store.conftest import gpu_row, host_row

HOURS, DAYS, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
# Whole hours that lie behind, so that stores, which know their own clock only, take everything.
NOON = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - DAYS


@pytest.fixture
def machine(engine, make_instance, time_machine, days):
    time_machine.move_to(NOON, tick=True)
    days(NOON, NOON - 32 * DAYS)
    machine = make_instance(gpus=2)
    machine.gpus.update(first_seen_at=NOON - 40 * DAYS)
    reporting(machine, every=60)
    return machine


@pytest.fixture
def gpu(machine):
    return machine.gpus.get(index=0)


@pytest.fixture
def other(machine):
    return machine.gpus.get(index=1)


def rows(gpu, since, values, *, every=60, **more):
    """A row a value, `every` seconds apart; None leaves its moment out."""
    return [
        gpu_row(gpu, since + timedelta(seconds=every * step), utilization_percent=value, **more)
        for step, value in enumerate(values)
        if value is not None
    ]


def read(gpu, span, *, fields=("utilization_percent",), **more):
    series = gpu_series(gpu_ids=[gpu.pk], fields=list(fields), since=NOON - span, until=NOON, **more)
    return series, series.values[gpu.pk]


def known(series, column):
    return {start: value for start, value in zip(series.starts, column, strict=True) if value is not None}


@pytest.mark.parametrize(("statistic", "expected"), [("mean", 24.5), ("min", 20.0), ("max", 29.0)])
def test_figures_are_those_of_the_samples_in_each_bucket(engine, gpu, statistic, expected):
    engine.put(gpus=rows(gpu, NOON - HOURS, map(float, range(60))))
    series, values = read(gpu, HOURS, statistic=statistic, max_points=7)
    assert series.bucket_seconds == 600
    assert known(series, values["utilization_percent"])[NOON - 40 * MINUTE] == expected
    assert len(known(series, values["utilization_percent"])) == 6


def test_a_percentile_lies_between_the_readings_around_it_and_says_of_what_it_is(engine, gpu):
    engine.put(gpus=rows(gpu, NOON - HOURS, map(float, range(60))))
    series, values = read(gpu, HOURS, statistic="p95", max_points=7)
    # One engine takes the reading at the rank, the other interpolates to the one before.
    assert 28.5 <= known(series, values["utilization_percent"])[NOON - 40 * MINUTE] <= 29.0
    assert series.percentile_of == "samples"


def test_a_sample_counts_in_the_bucket_that_it_begins(engine, gpu):
    engine.put(gpus=rows(gpu, NOON - 10 * MINUTE, [10.0, 20.0], every=120))
    series, values = read(gpu, 10 * MINUTE)
    assert series.bucket_seconds == 120
    assert known(series, values["utilization_percent"]) == {NOON - 10 * MINUTE: 10.0, NOON - 8 * MINUTE: 20.0}


def test_a_gap_stays_a_gap(engine, gpu):
    values = [50.0] * 10 + [None] * 20 + [50.0] * 30
    engine.put(gpus=rows(gpu, NOON - HOURS, values))
    series, found = read(gpu, HOURS)
    missing = {NOON - HOURS + minute * MINUTE for minute in range(10, 30)}
    assert set(known(series, found["utilization_percent"])) == set(series.starts) - missing
    assert set(known(series, found["utilization_percent"]).values()) == {50.0}


def test_a_value_that_was_not_read_is_none_though_others_were(engine, gpu):
    engine.put(gpus=[gpu_row(gpu, NOON - 10 * MINUTE, power_watts=300.0)])
    series, found = read(gpu, HOURS, fields=["power_watts", "sm_activity"])
    assert known(series, found["power_watts"]) == {NOON - 10 * MINUTE: 300.0}
    assert known(series, found["sm_activity"]) == {}


def test_the_newest_sample_is_there_at_once(engine, gpu, time_machine):
    now = datetime.now(UTC) + DAYS
    time_machine.move_to(now, tick=True)
    reporting_seconds = 5
    gpu.instance.agent.interval_seconds = reporting_seconds
    gpu.instance.agent.save()
    engine.put(gpus=rows(gpu, now - 10 * MINUTE, map(float, range(121)), every=reporting_seconds))
    series = gpu_series(gpu_ids=[gpu.pk], fields=["utilization_percent"], since=now - 10 * MINUTE, until=now)
    assert max(known(series, series.values[gpu.pk]["utilization_percent"]).values()) >= 118.5


def test_late_samples_fill_the_gap_they_were_made_in(engine, gpu):
    engine.put(gpus=rows(gpu, NOON - 10 * MINUTE, [70.0] * 10))
    engine.put(gpus=rows(gpu, NOON - 40 * MINUTE, [30.0] * 10))
    series, found = read(gpu, HOURS)
    column = known(series, found["utilization_percent"])
    assert column[NOON - 40 * MINUTE] == 30.0
    assert column[NOON - 2 * MINUTE] == 70.0
    assert NOON - 20 * MINUTE not in column


def test_a_batch_that_comes_twice_counts_once(engine, gpu, other):
    batch = rows(gpu, NOON - HOURS, [10.0, 20.0] * 30)
    engine.put(gpus=batch)
    assert not engine.put(gpus=batch[:30])
    assert not engine.put(gpus=[*batch, *batch])
    engine.put(gpus=rows(other, NOON - HOURS, [90.0] * 60))
    mean = merged_gpu_series(
        gpu_ids=[gpu.pk, other.pk], fields=["utilization_percent"], since=NOON - HOURS, until=NOON, max_points=2
    )
    assert known(mean, mean.values[TOGETHER]["utilization_percent"]) == {NOON - HOURS: 52.5}
    states = state_series(gpu_ids=[gpu.pk], since=NOON - HOURS, until=NOON, max_points=2)
    assert [one for one in states.seconds[gpu.pk] if one] == [{GpuState.WORKING: 3600.0}]


@pytest.mark.parametrize(("statistic", "expected"), [("mean", 40.0), ("min", 10.0), ("max", 90.0), ("p95", 90.0)])
def test_several_gpus_are_one_line_in_which_every_sample_weighs_the_same(engine, gpu, other, statistic, expected):
    engine.put(gpus=rows(gpu, NOON - HOURS, [10.0] * 50) + rows(other, NOON - HOURS, [90.0] * 30))
    series = merged_gpu_series(
        gpu_ids=[gpu.pk, other.pk],
        fields=["utilization_percent"],
        since=NOON - HOURS,
        until=NOON,
        max_points=2,
        statistic=statistic,
    )
    assert known(series, series.values[TOGETHER]["utilization_percent"]) == {NOON - HOURS: expected}


def test_machines_and_gpus_are_told_apart(engine, machine, gpu, make_instance):
    stranger = make_instance(name="stranger", gpus=1)
    engine.put(
        gpus=[
            gpu_row(gpu, NOON - 10 * MINUTE, memory_used_bytes=80 << 30),
            gpu_row(stranger.gpus.get(), NOON - 10 * MINUTE, memory_used_bytes=1),
        ],
        hosts=[host_row(machine, NOON - 10 * MINUTE, memory_used_bytes=2 << 40, disk_read_iops=12.5)],
    )
    _, of_gpu = read(gpu, HOURS, fields=["memory_used_bytes"])
    host = host_series(
        instance_ids=[machine.pk], fields=["memory_used_bytes", "disk_read_iops"], since=NOON - HOURS, until=NOON
    )
    values = host.values[machine.pk]
    assert max(filter(None, of_gpu["memory_used_bytes"])) == 80 << 30
    assert max(filter(None, values["memory_used_bytes"])) == 2 << 40
    assert max(filter(None, values["disk_read_iops"])) == 12.5
    assert set(host.values) == {machine.pk}


@pytest.mark.parametrize("together", [False, True])
def test_every_bit_that_was_set_is_kept(engine, gpu, together):
    engine.put(
        gpus=[
            gpu_row(gpu, NOON - 10 * MINUTE, throttle_reasons=4),
            gpu_row(gpu, NOON - 9 * MINUTE, throttle_reasons=64),
            gpu_row(gpu, NOON - 4 * MINUTE, throttle_reasons=0),
        ]
    )
    ask = merged_gpu_series if together else gpu_series
    series = ask(gpu_ids=[gpu.pk], fields=["throttle_reasons"], since=NOON - 10 * MINUTE, until=NOON)
    column = series.values[TOGETHER if together else gpu.pk]["throttle_reasons"]
    assert known(series, column) == {NOON - 10 * MINUTE: 68.0, NOON - 4 * MINUTE: 0.0}


def test_a_month_is_read_with_its_gaps_and_no_more_points_than_asked_for(engine, gpu):
    engine.put(gpus=rows(gpu, NOON - 8 * DAYS, [40.0] * 60) + rows(gpu, NOON - 3 * HOURS, [60.0] * 180))
    engine.roll_up(NOON, since=NOON - 8 * DAYS)
    series, found = read(gpu, 30 * DAYS, max_points=100)
    column = known(series, found["utilization_percent"])
    assert len(series.starts) <= 100
    assert series.bucket_seconds % 3600 == 0
    width = timedelta(seconds=series.bucket_seconds)
    assert {value for start, value in column.items() if start < NOON - 4 * DAYS} == {40.0}
    assert {value for start, value in column.items() if start >= NOON - 4 * DAYS} == {60.0}
    assert any(start <= NOON - 8 * DAYS < start + width for start in column)
    assert len(column) <= 4


def test_seconds_in_states_over_hours_say_what_silence_was(engine, machine, gpu):
    machine.observations.create(seen_at=NOON - 12 * HOURS, state="running", billing="full", rule_version=1)
    machine.observations.create(seen_at=NOON - 6 * HOURS, state="stopped", billing="full", rule_version=1)
    machine.observations.create(seen_at=NOON - 5.5 * HOURS, state="running", billing="full", rule_version=1)
    engine.put(
        gpus=rows(gpu, NOON - 8 * HOURS, [0.0] * 60, state=GpuState.HELD_IDLE)
        + rows(gpu, NOON - HOURS, [90.0] * 30, state=GpuState.WORKING)
        + rows(gpu, NOON - HOURS / 2, [1.0] * 30, state=GpuState.STARVED)
    )
    engine.roll_up(NOON + HOURS, since=NOON - 8 * HOURS)
    series = state_series(gpu_ids=[gpu.pk], since=NOON - 8 * HOURS, until=NOON, max_points=9)
    seconds = series.seconds[gpu.pk]
    assert seconds[0] == pytest.approx({GpuState.HELD_IDLE: 3600})
    assert seconds[1] == pytest.approx({GpuState.UNKNOWN: 3600})
    assert seconds[2] == pytest.approx({GpuState.STOPPED: 1800, GpuState.UNKNOWN: 1800})
    assert seconds[-1] == pytest.approx({GpuState.WORKING: 1800, GpuState.STARVED: 1800})


def test_seconds_in_states_begin_when_the_gpu_was_first_seen(engine, gpu):
    gpu.first_seen_at = NOON - 2.5 * HOURS
    gpu.save()
    engine.put(gpus=rows(gpu, NOON - HOURS, [90.0] * 60))
    engine.roll_up(NOON + HOURS, since=NOON - 8 * HOURS)
    series = state_series(gpu_ids=[gpu.pk], since=NOON - 7 * HOURS, until=NOON, max_points=8)
    found = series.seconds[gpu.pk]
    assert found[:4] == [None] * 4
    assert found[4] == pytest.approx({GpuState.UNKNOWN: 1800})
    assert found[-1] == pytest.approx({GpuState.WORKING: 3600})


def test_many_gpus_are_asked_for_in_several_parts(engine, make_instance, machine, monkeypatch):
    from fleet.telemetry.store import prometheus

    monkeypatch.setattr(prometheus, "IDS_AT_ONCE", 3)
    gpus = list(make_instance(name="large", gpus=8).gpus.order_by("index"))
    engine.put(gpus=[row for number, gpu in enumerate(gpus) for row in rows(gpu, NOON - HOURS, [number * 10.0] * 6)])
    span: dict[str, Any] = {"fields": ["utilization_percent"], "since": NOON - HOURS, "until": NOON, "max_points": 2}
    ids = [gpu.pk for gpu in gpus]
    one_by_one = gpu_series(gpu_ids=ids, **span)
    assert [max(filter(None, one_by_one.values[pk]["utilization_percent"]), default=0.0) for pk in ids] == [
        number * 10.0 for number in range(8)
    ]
    for statistic, expected in {"mean": 35.0, "min": 0.0, "max": 70.0}.items():
        merged = merged_gpu_series(gpu_ids=ids, **{**span, "statistic": statistic})
        assert known(merged, merged.values[TOGETHER]["utilization_percent"]) == {NOON - HOURS: expected}
