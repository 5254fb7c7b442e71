"""Whether a machine is idle, case by case: what keeps it from being stopped, and the truly idle ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.idle.verdict.evidence import GpuWindow, Hold, HostWindow, MachineWindow, Mode, ServingWindow
from fleet.idle.verdict.limits import Limits
from fleet.idle.verdict.verdict import Answer, judge, judge_parts

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
FRESH = NOW - timedelta(seconds=10)
EARLIER = NOW - timedelta(days=2)
GIB = 1 << 30

RESTING = GpuWindow(
    index=0,
    coverage=1.0,
    newest_at=FRESH,
    utilization_percent=0.0,
    lowest_utilization_percent=0.0,
    sm_activity=0.0,
    power_watts=72.0,
    power_limit_watts=700.0,
    floor_watts=70.0,
    memory_used_bytes=40 * GIB,
    process_count=1,
)
QUIET_HOST = HostWindow(
    coverage=1.0,
    newest_at=FRESH,
    cpu_percent=2.0,
    disk_bytes_per_second=20_000.0,
    network_bytes_per_second=4_000.0,
    ssh_sessions=0,
    busy_kernels=0,
)
# A notebook that somebody forgot on Friday: memory held, a kernel that waits, nobody there.
FORGOTTEN = MachineWindow(
    now=NOW,
    window=timedelta(hours=1),
    mode=Mode.INTERACTIVE,
    powered=True,
    gpu_count=2,
    gpus=(RESTING, replace(RESTING, index=1)),
    host=QUIET_HOST,
    started_at=EARLIER,
    active_at=NOW - timedelta(hours=9),
)
SERVED = ServingWindow("vllm", ready_at=EARLIER, coverage=1.0, requests=0, waiting=0)


def gpu(**changes):
    return replace(FORGOTTEN, gpus=(replace(RESTING, **changes), replace(RESTING, index=1)))


def host(**changes):
    return replace(FORGOTTEN, host=replace(QUIET_HOST, **changes))


def serving(mode=Mode.SERVING, **changes):
    return replace(FORGOTTEN, mode=mode, serving=(replace(SERVED, **changes),))


ACTIVE = {
    "one of eight GPUs works": (gpu(utilization_percent=80.0), "utilization"),
    "a single kernel once in the window": (gpu(utilization_percent=3.0), "utilization"),
    "work that utilization does not show": (gpu(utilization_percent=0.0, sm_activity=0.04), "sm_activity"),
    "copies between memories": (gpu(dram_activity=0.2), "dram_activity"),
    "power above rest": (gpu(power_watts=140.0), "power"),
    "all GPUs but one unused": (
        replace(FORGOTTEN, gpus=(RESTING, replace(RESTING, index=1, tensor_activity=0.3))),
        "tensor_activity",
    ),
    "NCCL hang": (
        gpu(utilization_percent=100.0, lowest_utilization_percent=100.0, sm_activity=None, power_watts=110.0),
        "stalled",
    ),
    "data preparation": (host(cpu_percent=70.0), "cpu"),
    "model download": (host(network_bytes_per_second=9e6), "network"),
    "checkpoint upload": (host(disk_bytes_per_second=5e7), "disk"),
    "a notebook cell that computes": (host(busy_kernels=1), "busy_kernels"),
    "somebody logged in an hour ago": (
        replace(host(ssh_sessions=1), active_at=NOW - timedelta(hours=1)),
        "ssh_sessions",
    ),
    "a job holds it": (replace(FORGOTTEN, holds=(Hold("job", "bob"),)), "hold_job"),
    "a person holds it until noon": (
        replace(FORGOTTEN, holds=(Hold("person", "bob", NOW + timedelta(hours=9)),)),
        "hold_person",
    ),
    "a batch run is alive": (
        replace(FORGOTTEN, mode=Mode.BATCH, holds=(Hold("heartbeat", "run 7", NOW + timedelta(minutes=1)),)),
        "hold_heartbeat",
    ),
    "pinned": (replace(FORGOTTEN, mode=Mode.PINNED), "pinned"),
    "served model without traffic": (serving(mode=Mode.INTERACTIVE), "serves"),
    "a request in an hour": (serving(requests=1), "requests"),
    "requests wait in a queue": (serving(waiting=3), "requests_waiting"),
    "work shown by a GPU whose agent has gaps": (gpu(utilization_percent=50.0, coverage=0.1), "utilization"),
}
UNKNOWN = {
    "no agent": (replace(FORGOTTEN, gpus=(), host=None), "no_report"),
    "the agent is silent": (gpu(newest_at=NOW - timedelta(minutes=5)), "stale"),
    "an agent gap": (gpu(coverage=0.8), "sparse"),
    "a sample from the future": (gpu(newest_at=NOW + timedelta(minutes=5)), "from_the_future"),
    "the clock jumped": (replace(FORGOTTEN, clock_jumped_at=NOW - timedelta(minutes=30)), "clock_jumped"),
    "set-up phase": (replace(FORGOTTEN, started_at=NOW - timedelta(minutes=65)), "started_lately"),
    "reused machine": (replace(FORGOTTEN, started_at=NOW - timedelta(minutes=10)), "started_lately"),
    "nobody knows when it started": (replace(FORGOTTEN, started_at=None), "start_unknown"),
    "MIG, whose utilization is not read": (gpu(utilization_percent=None, sm_activity=None), "not_read"),
    "a GPU fell off the bus": (gpu(lost=True), "gpu_lost"),
    "seven of eight report": (replace(FORGOTTEN, gpu_count=8), "gpus_missing"),
    "the driver hangs": (replace(FORGOTTEN, driver_answers=False), "driver_hung"),
    "only the provider says that it rests": (replace(FORGOTTEN, gpus=(), gpu_count=2), "no_report"),
    "the host's counters are not read": (host(network_bytes_per_second=None), "host_reading_missing"),
    "the host is not read": (replace(FORGOTTEN, host=None), "host_not_read"),
    "the provider does not say whether it runs": (replace(FORGOTTEN, powered=None), "provider_unclear"),
    "a model loads": (serving(ready_at=None), "never_ready"),
    "a model became ready lately": (serving(ready_at=NOW - timedelta(minutes=20)), "ready_too_lately"),
    "an engine whose counters are not read": (serving(requests=None), "requests_not_read"),
    "a server with no endpoint": (replace(FORGOTTEN, mode=Mode.SERVING), "no_endpoint"),
}
IDLE = {
    "forgotten notebook": FORGOTTEN,
    "an SSH session that somebody forgot": host(ssh_sessions=1),
    "rented and empty": gpu(memory_used_bytes=0, process_count=0),
    "a batch run whose heartbeat ended": replace(
        FORGOTTEN, mode=Mode.BATCH, holds=(Hold("heartbeat", "run 7", NOW - timedelta(minutes=9)),)
    ),
    "a server that nobody asks": serving(),
    "zombies that hold memory": gpu(process_count=4, memory_used_bytes=79 * GIB),
    "a chip that tells no activity": gpu(sm_activity=None),
}


@pytest.mark.parametrize("case", ACTIVE)
def test_use_is_never_idle(case):
    machine, code = ACTIVE[case]
    verdict = judge(machine)
    assert (verdict.answer, code in verdict.codes) == (Answer.ACTIVE, True), verdict


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_was_not_read_is_never_idle(case):
    machine, code = UNKNOWN[case]
    verdict = judge(machine)
    assert (verdict.answer, code in verdict.codes) == (Answer.UNKNOWN, True), verdict


@pytest.mark.parametrize("case", IDLE)
def test_the_truly_idle_are_found_with_the_readings_that_say_so(case):
    verdict = judge(IDLE[case])
    assert verdict.answer is Answer.IDLE, verdict
    assert {"utilization", "cpu", "disk", "network", "memory_held"} <= set(verdict.codes)
    assert verdict.quiet_since == NOW - timedelta(hours=1)


def test_a_machine_that_is_off_is_off_whatever_it_last_said():
    assert judge(replace(gpu(utilization_percent=99.0), powered=False)).answer is Answer.OFF


def test_a_window_is_no_shorter_than_a_pause():
    with pytest.raises(ValueError, match="five minutes"):
        judge(replace(FORGOTTEN, window=timedelta(minutes=1)))


def test_a_shared_machine_is_idle_only_if_every_part_is():
    mine = replace(RESTING, owner="alice")
    hers = replace(RESTING, index=1, owner="bob", utilization_percent=60.0)
    shared = replace(FORGOTTEN, gpus=(mine, hers))
    assert judge(shared).answer is Answer.ACTIVE
    parts = {owner: verdict.answer for owner, verdict in judge_parts(shared).items()}
    assert parts == {"alice": Answer.IDLE, "bob": Answer.ACTIVE}


LEVELS = st.none() | st.floats(0, 100)


@settings(max_examples=300, deadline=None)
@given(
    coverage=st.floats(0, 1),
    age=st.integers(-600, 600),
    utilization=LEVELS,
    power=st.none() | st.floats(0, 700),
    cpu=LEVELS,
    count=st.integers(0, 3) | st.none(),
    held=st.booleans(),
)
def test_idle_needs_all_of_the_evidence(coverage, age, utilization, power, cpu, count, held):
    newest = NOW - timedelta(seconds=age)
    one = replace(
        RESTING,
        coverage=coverage,
        newest_at=newest,
        utilization_percent=utilization,
        sm_activity=None,
        power_watts=power,
    )
    machine = replace(
        FORGOTTEN,
        gpus=(one,),
        gpu_count=count,
        host=replace(QUIET_HOST, cpu_percent=cpu),
        holds=(Hold("person", "bob"),) if held else (),
    )
    if judge(machine).answer is Answer.IDLE:
        assert coverage >= 0.9
        assert abs(age) <= 60
        assert count in {0, 1}
        assert not held
        assert utilization is not None
        assert utilization < 2
        assert cpu is not None
        assert cpu < 15
        assert power is None or power < 70 * 1.25


@pytest.mark.parametrize(("cores", "percent"), [(None, 15.0), (4, 15.0), (16, 5.62), (192, 0.47)])
def test_one_busy_core_is_use_however_large_the_machine(cores, percent):
    limits = Limits().on(cores)
    assert limits.cpu_percent == percent
    if cores:
        assert (
            judge(replace(FORGOTTEN, host=replace(QUIET_HOST, cpu_percent=100 / cores)), limits).answer is Answer.ACTIVE
        )
