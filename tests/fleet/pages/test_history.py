"""Past states come from raw samples, beyond six hours from rollups, and from what the provider's listings showed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import Observation
from fleet.pages.history import History, runs, state_history
from fleet.pages.machine import MachineView
from fleet.states import GpuState
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import Agent, GpuSample, HostSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.roll import roll_up
from tests.fleet.telemetry.rolling import store

from .conftest import GIB, HELD, WORKING

NOW = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _frozen(time_machine, db):
    time_machine.move_to(NOW, tick=False)
    ensure_partitions(now=NOW)


def sample(instance, minutes_ago, **reading):
    at = NOW - timedelta(minutes=minutes_ago)
    GpuSample.objects.create(gpu=instance.gpus.get(), sampled_at=at, **reading)


def states(instance, minutes=60, points=7):
    view = MachineView(machines_now([instance], now=NOW)[0], NOW)
    history = state_history(machines=[view], since=NOW - timedelta(minutes=minutes), until=NOW, max_points=points)
    return next(iter(history.states.values()))


def test_each_bucket_is_judged_like_now(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW - timedelta(days=1))
    for minute in range(31, 60):
        sample(instance, minute, **WORKING)
    for minute in range(1, 30):
        sample(instance, minute, **HELD)
    found = states(instance)
    assert found[0] is GpuState.WORKING
    assert found[-1] is GpuState.HELD_IDLE


def test_silence_is_unknown_and_the_time_before_the_machine_is_nothing(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW - timedelta(minutes=30))
    found = states(instance)
    assert found[0] is None
    assert found[-1] is GpuState.UNKNOWN


def test_a_listing_that_showed_it_off_makes_silence_stopped(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW - timedelta(days=1))
    for minutes_ago, state in ((600, "running"), (40, "stopped"), (15, "running")):
        Observation.objects.create(
            instance=instance,
            seen_at=NOW - timedelta(minutes=minutes_ago),
            state=state,
            billing="full",
            currency="USD",
            rule_version=1,
        )
    found = states(instance)
    assert found[0] is GpuState.UNKNOWN
    assert GpuState.STOPPED in found
    assert found[-1] is GpuState.UNKNOWN


def test_waiting_of_the_host_explains_a_slow_gpu(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW - timedelta(days=1))
    for minute in range(1, 10):
        sample(instance, minute, utilization_percent=30.0, memory_used_bytes=60 * GIB)
        HostSample.objects.create(
            instance=instance, sampled_at=NOW - timedelta(minutes=minute), cpu_iowait_percent=60.0
        )
    assert states(instance)[-1] is GpuState.STARVED


def test_neighbouring_buckets_of_one_state_are_one_run():
    starts = [NOW + timedelta(minutes=10 * number) for number in range(4)]
    column = [None, GpuState.WORKING, GpuState.WORKING, GpuState.FREE]
    drawn = runs(History(starts, 600, {}), column)
    assert [(run.state, run.percent) for run in drawn] == [(None, 25), (GpuState.WORKING, 50), (GpuState.FREE, 25)]
    assert drawn[1].end == starts[3]


def test_what_an_agent_saw_before_the_first_listing_counts(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW)
    for minute in range(41, 50):
        sample(instance, minute, **WORKING)
    found = states(instance)
    assert found[0] is None
    assert GpuState.WORKING in found
    assert found[-1] is GpuState.UNKNOWN


def test_beyond_raw_samples_a_bucket_is_the_state_that_took_most_of_it(make_machine):
    instance = make_machine(readings=[WORKING], first_seen_at=NOW - timedelta(days=9))
    instance.gpus.update(first_seen_at=NOW - timedelta(days=9))
    Agent.objects.filter(instance=instance).update(interval_seconds=60)
    for since, hours, state in ((20, 2, GpuState.WORKING), (18, 1, GpuState.HELD_IDLE), (2, 2, GpuState.FREE)):
        store(instance.gpus.get(), NOW - timedelta(hours=since), seconds=hours * 3600, every=60, state=state)
    Observation.objects.create(
        instance=instance,
        seen_at=NOW - timedelta(hours=10),
        state="stopped",
        billing="full",
        currency="USD",
        rule_version=1,
    )
    roll_up(now=NOW - timedelta(hours=1))
    view = MachineView(machines_now([instance], now=NOW)[0], NOW)
    history = state_history(machines=[view], since=NOW - timedelta(hours=24), until=NOW, max_points=25)
    (found,) = history.states.values()
    assert (history.resolution, history.bucket_seconds) == ("5min", 3600)
    at = dict(zip(history.starts, found, strict=True))
    expected = {20: "working", 19: "working", 18: "held", 17: "unknown", 9: "stopped", 2: "free", 1: "free"}
    assert {ago: at[NOW - timedelta(hours=ago)] for ago in expected} == expected
