"""The seven states of a GPU."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleet.states import DEFAULTS, IDLE_MONEY, Evidence, GpuState, classify, shows_work, worst

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GIB = 1 << 30
BASE = Evidence(
    now=NOW,
    powered=True,
    sampled_at=NOW - timedelta(seconds=5),
    utilization_percent=80.0,
    memory_used_bytes=40 * GIB,
    power_watts=500.0,
    power_limit_watts=700.0,
)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, GpuState.WORKING),
        ({"powered": False}, GpuState.STOPPED),
        ({"powered": None}, GpuState.WORKING),
        ({"sampled_at": None}, GpuState.UNKNOWN),
        ({"sampled_at": NOW - timedelta(seconds=31)}, GpuState.UNKNOWN),
        ({"sampled_at": NOW - timedelta(seconds=30)}, GpuState.WORKING),
        ({"lost": True}, GpuState.UNKNOWN),
        ({"utilization_percent": None}, GpuState.UNKNOWN),
        ({"utilization_percent": 0.0}, GpuState.HELD_IDLE),
        ({"utilization_percent": 0.0, "memory_used_bytes": 300 << 20}, GpuState.FREE),
        ({"utilization_percent": 0.0, "memory_used_bytes": 0, "process_count": 1}, GpuState.HELD_IDLE),
        ({"utilization_percent": 0.0, "memory_used_bytes": None}, GpuState.UNKNOWN),
        ({"utilization_percent": 0.0, "memory_used_bytes": None, "process_count": 2}, GpuState.HELD_IDLE),
        ({"utilization_percent": 1.0, "sm_activity": 0.4}, GpuState.WORKING),
        ({"utilization_percent": 100.0, "power_watts": 120.0}, GpuState.STALLED),
        ({"utilization_percent": 100.0, "power_watts": 120.0, "sm_activity": 0.6}, GpuState.WORKING),
        ({"utilization_percent": 100.0, "power_watts": 500.0, "sm_activity": 0.0}, GpuState.STALLED),
        ({"utilization_percent": 100.0, "power_watts": None}, GpuState.WORKING),
        ({"utilization_percent": 100.0, "power_watts": 120.0, "power_limit_watts": None}, GpuState.WORKING),
        ({"utilization_percent": 40.0, "cpu_iowait_percent": 25.0}, GpuState.STARVED),
        ({"utilization_percent": 40.0, "pressure_io_percent": 25.0}, GpuState.STARVED),
        ({"utilization_percent": 40.0, "cpu_iowait_percent": 1.0}, GpuState.WORKING),
        ({"utilization_percent": 90.0, "cpu_iowait_percent": 25.0}, GpuState.WORKING),
    ],
)
def test_each_state_follows_from_its_readings(change, state):
    assert classify(replace(BASE, **change)).state == state


def test_a_hosts_old_readings_explain_nothing():
    waiting = replace(BASE, utilization_percent=40.0, cpu_iowait_percent=25.0)
    assert classify(replace(waiting, host_sampled_at=NOW - timedelta(seconds=10))).state == GpuState.STARVED
    assert classify(replace(waiting, host_sampled_at=NOW - timedelta(seconds=90))).state == GpuState.WORKING


def test_a_verdict_names_what_decided_it():
    assert dict(classify(replace(BASE, lost=True)).because) == {"reason": "lost"}
    held = classify(replace(BASE, utilization_percent=0.0))
    assert dict(held.because) == {"utilization_percent": 0.0, "memory_used_bytes": 40 * GIB}
    starved = classify(replace(BASE, utilization_percent=40.0, cpu_iowait_percent=25.0))
    assert ("cpu_iowait_percent", 25.0) in starved.because


readings = st.none() | st.floats(0, 100)


@given(readings, st.none() | st.floats(0, 1), st.none() | st.integers(0, 1 << 37), st.none() | st.integers(0, 9))
def test_what_was_not_read_never_counts_as_idle(utilization, sm_activity, memory, processes):
    evidence = replace(
        BASE,
        utilization_percent=utilization,
        sm_activity=sm_activity,
        memory_used_bytes=memory,
        process_count=processes,
    )
    state = classify(evidence).state
    if utilization is None or (memory is None and processes is None):
        assert state not in IDLE_MONEY
    if state in IDLE_MONEY:
        assert shows_work(utilization_percent=utilization, sm_activity=sm_activity) is False


def test_work_is_what_the_thresholds_say():
    assert shows_work(utilization_percent=None, sm_activity=0.9) is None
    assert shows_work(utilization_percent=DEFAULTS.busy_percent, sm_activity=None) is True
    assert shows_work(utilization_percent=0.0, sm_activity=DEFAULTS.stalled_sm_activity) is False


def test_a_machine_is_named_by_what_a_person_should_hear_of_first():
    for states in itertools.permutations([GpuState.WORKING, GpuState.FREE, GpuState.STALLED]):
        assert worst(list(states)) == GpuState.STALLED
    assert worst([GpuState.FREE, GpuState.UNKNOWN]) == GpuState.UNKNOWN
    assert worst([]) == GpuState.UNKNOWN
