"""Reports over a fleet say the same, whichever engine keeps the readings; late samples change them afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.states import GpuState
from fleet.telemetry.models import Agent
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.models import GpuRollupHour, LateBucket, RollupProgress
from fleet.telemetry.store import prometheus_rollups
from fleet.telemetry.usage import fleet_usage
from tests.fleet.telemetry.rolling import reporting
from tests.fleet.telemetry.store.conftest import gpu_row

HOURS, DAYS = timedelta(hours=1), timedelta(days=1)
NOON = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - DAYS


@pytest.fixture
def gpus(engine, make_instance, time_machine, days):
    time_machine.move_to(NOON + HOURS, tick=True)
    days(NOON, NOON - DAYS)
    machine = make_instance(gpus=2)
    machine.gpus.update(first_seen_at=NOON - 2 * HOURS)
    reporting(machine, every=60)
    return list(machine.gpus.order_by("index"))


def minutes(gpu, since, count, percent, state=GpuState.WORKING):
    moments = (since + timedelta(minutes=step) for step in range(count))
    return [gpu_row(gpu, at, utilization_percent=percent, power_watts=10 * percent, state=state) for at in moments]


def usage(acme, **more):
    usage = fleet_usage(team_ids=[acme.pk], since=NOON - 2 * HOURS, until=NOON, max_points=3, resolution=HOUR, **more)
    (line,) = usage.lines
    return usage, line


def test_hours_in_states_percentiles_and_power_of_a_fleet(engine, gpus, acme):
    first, second = gpus
    engine.put(
        gpus=minutes(first, NOON - 2 * HOURS, 60, 40.0)
        + minutes(second, NOON - 2 * HOURS, 30, 0.0, GpuState.HELD_IDLE)
        + minutes(first, NOON - HOURS, 60, 90.0)
    )
    engine.roll_up(NOON + HOURS, since=NOON - 2 * HOURS)
    found, line = usage(acme)
    start = found.starts.index(NOON - 2 * HOURS)
    hours = {state: line.gpu_hours(state)[start : start + 2] for state in GpuState}
    assert hours[GpuState.WORKING] == pytest.approx([1.0, 1.0])
    assert hours[GpuState.HELD_IDLE] == pytest.approx([0.5, 0.0])
    assert hours[GpuState.UNKNOWN] == pytest.approx([0.5, 1.0])
    assert line.utilization(0.95)[start : start + 2] == [40, 90]
    assert line.power_watts()[start : start + 2] == pytest.approx([400.0, 900.0])
    coverage = dict(GpuRollupHour.objects.filter(bucket_at=NOON - 2 * HOURS).values_list("gpu_id", "coverage"))
    assert coverage == pytest.approx({first.pk: 1.0, second.pk: 0.5})


def test_late_samples_are_counted_afterwards(engine, gpus, acme):
    first, _ = gpus
    engine.put(gpus=minutes(first, NOON - 2 * HOURS, 60, 40.0))
    engine.roll_up(NOON + HOURS, since=NOON - 2 * HOURS)
    engine.put(gpus=minutes(first, NOON - HOURS, 60, 80.0))
    LateBucket.objects.create(instance=first.instance, bucket_at=NOON - HOURS, bucket_seconds=300)
    engine.roll_up(NOON + HOURS, since=NOON - 2 * HOURS)
    found, line = usage(acme)
    assert line.gpu_hours(GpuState.WORKING)[found.starts.index(NOON - HOURS)] == pytest.approx(1.0)
    assert not LateBucket.objects.exists()


def test_a_fleet_is_rolled_up_in_steps_and_a_step_once(engine, gpus, acme, make_instance, monkeypatch):
    monkeypatch.setattr(prometheus_rollups, "GPUS_AT_ONCE", 2)
    more = make_instance(name="more", gpus=3)
    more.gpus.update(first_seen_at=NOON - 2 * HOURS)
    reporting(more, every=60)
    for gpu in [*gpus, *more.gpus.all()]:
        engine.put(gpus=minutes(gpu, NOON - 2 * HOURS, 120, 50.0))
    engine.roll_up(NOON + HOURS, since=NOON - 2 * HOURS)
    again = engine.roll_up(NOON + HOURS, since=NOON - 2 * HOURS)
    assert (again.steps, again.late) == (0, 0)
    assert RollupProgress.objects.get(resolution="1h").rolled_until == NOON
    found, line = usage(acme)
    start = found.starts.index(NOON - 2 * HOURS)
    assert line.gpu_hours(GpuState.WORKING)[start : start + 2] == pytest.approx([5.0, 5.0])


def test_a_machine_that_reports_seldom_is_covered_too(engine, gpus, acme):
    Agent.objects.update(interval_seconds=120)
    first, _ = gpus
    engine.put(gpus=minutes(first, NOON - HOURS, 60, 80.0)[::2])
    engine.roll_up(NOON + HOURS, since=NOON - HOURS)
    assert GpuRollupHour.objects.get(gpu=first).coverage == pytest.approx(1.0)
