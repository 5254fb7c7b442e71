"""What other tenants take shows against the machine's own calm hours; a change of its own work, or too little to compare, shows nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.quality.neighbours.hours import GIB, Hour
from fleet.quality.neighbours.score import FLAGGED_AT, Host, Outcome, Why, judge_hour
from tests.fleet.quality.neighbours.sandbox_hours import host_of, hours_of

AT = datetime(2026, 11, 17, 8, tzinfo=UTC)
SHARED = Host(shared=True)
OWN_DISK = Host(shared=True, disk_is_own=True)
CALM = Hour(
    at=AT,
    coverage=1.0,
    gpu_utilization_percent=90.0,
    gpu_power_watts=1200.0,
    gpu_memory_bytes=60 * GIB,
    gpu_processes=4.0,
    gpu_clock_mhz=1700.0,
    throttled=False,
    pcie_bytes_per_second=2e9,
    cpu_percent=25.0,
    iowait_percent=1.0,
    cpu_pressure_percent=1.0,
    io_pressure_percent=1.0,
    disk_bytes_per_second=2e8,
    disk_latency_seconds=0.0006,
    network_bytes_per_second=4e7,
)


def before(count: int = 24, **values: Any) -> list[Hour]:
    return [replace(CALM, at=AT - timedelta(hours=count - number), **values) for number in range(count)]


def judged(host: Host = SHARED, history: list[Hour] | None = None, **now: Any) -> Outcome:
    return judge_hour(replace(CALM, **now), before() if history is None else history, host)


def codes(found: Outcome) -> dict[str, tuple[float, float]]:
    return {reason.code: (reason.before, reason.now) for reason in found.reasons}


def test_an_hour_like_the_others_is_a_score_of_zero():
    assert judged() == Outcome(Why.JUDGED, 0, (), 24)


def test_stalls_and_slow_disks_under_the_same_work_are_evidence_with_their_figures():
    found = judged(cpu_pressure_percent=18.0, io_pressure_percent=25.0, gpu_utilization_percent=60.0)
    assert found.score is not None
    assert found.score >= FLAGGED_AT
    assert codes(found) == {"cpu_pressure": (1.0, 18.0), "io_pressure": (1.0, 25.0), "slower": (90.0, 60.0)}


@pytest.mark.parametrize(
    ("code", "now"),
    [
        ("cpu_pressure", {"cpu_pressure_percent": 90.0}),
        ("io_pressure", {"io_pressure_percent": 90.0}),
        ("iowait", {"io_pressure_percent": None, "iowait_percent": 60.0}),
        ("disk_latency", {"disk_latency_seconds": 0.2}),
        ("clocks", {"gpu_clock_mhz": 900.0}),
        ("pcie", {"pcie_bytes_per_second": 2e8}),
        ("network", {"network_bytes_per_second": 1e6}),
    ],
)
def test_each_sign_counts_and_none_is_enough_by_itself(code, now):
    history = before(io_pressure_percent=None) if code == "iowait" else None
    found = judged(history=history, **now)
    assert list(codes(found)) == [code]
    assert found.score is not None
    assert 0 < found.score < FLAGGED_AT


def test_an_hour_of_less_own_work_with_the_same_programs_is_harm_and_no_sign():
    """Nothing of the host got worse: a slow step has many causes."""
    assert judged(gpu_utilization_percent=50.0).score == 0


@pytest.mark.parametrize(
    "now",
    [
        {"gpu_memory_bytes": 20 * GIB},
        {"gpu_processes": 1.0},
        {"cpu_percent": 60.0},
        {"gpu_utilization_percent": 20.0},
        {"network_bytes_per_second": 4e8},
        {"gpu_memory_bytes": None},
    ],
    ids=lambda now: next(iter(now)),
)
def test_other_work_of_its_own_is_no_evidence(now):
    found = judged(cpu_pressure_percent=60.0, io_pressure_percent=60.0, **now)
    assert (found.score, found.why) == (None, Why.OTHER_WORK)


def test_more_own_traffic_on_a_disk_that_is_counted_for_this_machine_is_other_work():
    busy: dict[str, Any] = {"disk_bytes_per_second": 9e8, "io_pressure_percent": 40.0, "disk_latency_seconds": 0.02}
    assert judged(OWN_DISK, **busy).why is Why.OTHER_WORK
    assert judged(SHARED, **busy).score is not None


def test_a_slower_disk_counts_half_when_the_whole_host_moves_more():
    slow: dict[str, Any] = {"disk_latency_seconds": 0.02}
    alone, crowded = judged(**slow).score, judged(**slow, disk_bytes_per_second=2e9).score
    assert (alone, crowded) == (30, 15)


def test_less_work_without_a_sign_of_the_same_programs_is_other_work():
    """No process and no memory is seen: a job may just have ended."""
    unseen: dict[str, Any] = {"gpu_memory_bytes": None, "gpu_processes": None}
    found = judged(history=before(**unseen), **unseen, gpu_utilization_percent=50.0, cpu_pressure_percent=60.0)
    assert found.why is Why.OTHER_WORK


@pytest.mark.parametrize(("throttled", "counts"), [(False, True), (True, False), (None, False)])
def test_lower_clocks_count_only_where_the_gpu_has_no_reason_of_its_own(throttled, counts):
    assert ("clocks" in codes(judged(gpu_clock_mhz=1300.0, throttled=throttled))) is counts


def test_clocks_of_work_with_pauses_say_nothing():
    """They are low in the pauses, and how many there are is its own doing."""
    pauses: dict[str, Any] = {"gpu_utilization_percent": 45.0}
    assert judged(history=before(**pauses), **pauses, gpu_clock_mhz=900.0).score == 0


def test_the_calm_hours_decide_also_where_most_hours_are_crowded():
    history = before(20, cpu_pressure_percent=30.0, io_pressure_percent=30.0)[:16] + before(4)
    found = judged(history=history, cpu_pressure_percent=30.0, io_pressure_percent=30.0)
    assert codes(found) == {"cpu_pressure": (1.0, 30.0), "io_pressure": (1.0, 30.0)}


def test_too_few_hours_are_no_score():
    assert judged(history=before(5)) == Outcome(Why.TOO_NEW)
    assert judged(history=before(24, coverage=0.5)) == Outcome(Why.TOO_NEW)
    assert judged(history=[replace(hour, at=hour.at - timedelta(days=8)) for hour in before()]) == Outcome(Why.TOO_NEW)


@pytest.mark.parametrize(
    "now",
    [
        {"coverage": 0.3},
        {
            "cpu_pressure_percent": None,
            "io_pressure_percent": None,
            "iowait_percent": None,
            "disk_latency_seconds": None,
        },
    ],
)
def test_what_was_not_measured_is_no_score_and_never_zero(now):
    assert judged(**now) == Outcome(Why.NOT_MEASURED)


@pytest.mark.parametrize(("shared", "why"), [(False, Why.EXCLUSIVE), (None, Why.TENANCY_UNKNOWN)])
def test_nobody_is_blamed_on_a_host_that_is_not_known_to_be_shared(shared, why):
    assert judged(Host(shared), cpu_pressure_percent=90.0, io_pressure_percent=90.0) == Outcome(why)


def scores_of(name: str) -> list[int | None]:
    hours = hours_of(name)
    return [judge_hour(hour, hours[:place], host_of(name)).score for place, hour in enumerate(hours)]


def test_the_sandbox_s_crowded_host_is_found_and_its_calm_hours_are_calm():
    """Its neighbour comes for five hours of nine; the first six hours are what is compared with."""
    scores = scores_of("sweep-4090-02")
    assert scores[:6] == [None] * 6
    assert all(score is not None and score >= 90 for score in scores[11:16])
    assert scores[16:20] == [0, 0, 0, 0]
    assert sum(score is not None and score >= FLAGGED_AT for score in scores[20:]) == 3


@pytest.mark.parametrize(
    "name",
    ["ft-a100-01", "batch-a100-01", "serve-h200-01", "serve-l40s-02", "router-l40s-01", "sweep-4090-01", "sweep-4090-03", "dev-4090-01", "dev-l40s-01", "render-3090-01", "cn-ft-01"],
)  # fmt: skip
def test_no_well_behaved_machine_of_the_sandbox_is_suspected(name):
    scores = [score for score in scores_of(name) if score is not None]
    assert scores
    assert max(scores) < FLAGGED_AT / 2
