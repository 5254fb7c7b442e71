"""What the simulated GPUs do: pure functions that show, at the moment of birth, one of everything that goes wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import pytest

from fleet.sandbox import patterns
from fleet.sandbox.readings import Machine
from fleet.sandbox.rentals import first_rentals
from fleet.states import Evidence, GpuState, classify

JSON = dict[str, Any]

BORN_AT = 1_796_000_000.0
PATTERNS = [
    patterns.training,
    patterns.starved,
    patterns.serving,
    patterns.forgotten_notebook,
    patterns.notebook,
    patterns.free,
    patterns.noisy_neighbour,
    patterns.throttling,
    patterns.stalled,
    patterns.falls_off_the_bus,
]


def machine(name: str) -> Machine:
    rental = next(rental for rental in first_rentals(BORN_AT) if rental.name == name)
    return Machine.of(rental, born_at=BORN_AT)


def states_over(name: str, *, minutes: range) -> list[list[GpuState]]:
    """One list a GPU: the states that the product would see, once a minute."""
    subject = machine(name)
    per_minute = [verdicts(subject, BORN_AT + 60 * minute) for minute in minutes]
    return [list(column) for column in zip(*per_minute, strict=True)]


def verdicts(subject: Machine, at: float) -> list[GpuState]:
    sample, now = subject.sample(at), datetime.fromtimestamp(at, UTC)
    host = {key: sample["host"][key] for key in ("cpu_iowait_percent", "pressure_io_percent")}
    names = (
        "utilization_percent",
        "sm_activity",
        "power_watts",
        "power_limit_watts",
        "memory_used_bytes",
        "process_count",
    )
    return [
        classify(
            Evidence(
                now=now,
                powered=True,
                sampled_at=now,
                lost=gpu["state"] == "lost",
                **{name: gpu.get(name) for name in names},
                **host,
            )
        ).state
        for gpu in sample["gpus"]
    ]


def share(states: list[GpuState], state: GpuState) -> float:
    return states.count(state) / len(states)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_the_same_moment_and_seed_give_the_same_load_in_any_order(pattern: patterns.Pattern) -> None:
    moments = [37.5 * step for step in range(-3000, 3000, 7)]
    forward = [pattern(t, 0xABC03) for t in moments]
    assert [pattern(t, 0xABC03) for t in reversed(moments)] == forward[::-1]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_shares_stay_shares(pattern: patterns.Pattern) -> None:
    for t in range(-86400, 86400, 97):
        gpu = pattern(t, 0x51F07).gpu
        for name in ("utilization", "memory", "sm", "tensor", "dram", "power", "clock"):
            assert 0 <= getattr(gpu, name) <= 1, (name, t)


def test_training_works_and_dips_for_checkpoints() -> None:
    subject = machine("llm-pre-01")
    levels = [subject.sample(BORN_AT + at)["gpus"][0]["utilization_percent"] for at in range(0, 7200, 5)]
    assert 0.95 < sum(level > 90 for level in levels) / len(levels) < 0.995
    assert min(levels) < 25


def test_all_gpus_of_a_job_write_their_checkpoint_together() -> None:
    subject = machine("llm-pre-01")
    for at in range(0, 7200, 5):
        busy = [gpu["utilization_percent"] > 50 for gpu in subject.sample(BORN_AT + at)["gpus"]]
        assert len(set(busy)) == 1


@pytest.mark.parametrize(
    ("name", "gpu", "state", "at_least"),
    [
        ("llm-pre-01", 0, GpuState.WORKING, 0.95),
        ("vision-train-01", 0, GpuState.STARVED, 0.95),
        ("serve-l40s-01", 0, GpuState.WORKING, 1.0),
        ("eval-a100-01", 0, GpuState.HELD_IDLE, 1.0),
        ("dev-l4-01", 0, GpuState.FREE, 1.0),
        ("llm-pre-03", 0, GpuState.STALLED, 1.0),
        ("batch-a100-01", 5, GpuState.UNKNOWN, 1.0),
        ("batch-a100-01", 4, GpuState.WORKING, 0.9),
        ("sweep-4090-01", 0, GpuState.WORKING, 0.95),
    ],
)
def test_each_pattern_shows_as_the_state_it_is_about(name: str, gpu: int, state: GpuState, at_least: float) -> None:
    assert share(states_over(name, minutes=range(180))[gpu], state) >= at_least


def test_what_goes_wrong_went_well_before() -> None:
    assert share(states_over("llm-pre-03", minutes=range(-600, -60))[0], GpuState.WORKING) > 0.9
    assert share(states_over("batch-a100-01", minutes=range(-600, -60))[5], GpuState.WORKING) > 0.9
    assert share(states_over("eval-a100-01", minutes=range(-1440, -480))[0], GpuState.WORKING) > 0.4


def test_a_noisy_neighbour_slows_training_while_it_is_there() -> None:
    subject = machine("sweep-4090-02")
    samples = [subject.sample(BORN_AT + at) for at in range(0, 6 * 3600, 30)]
    crowded = [sample for sample in samples if sample["host"]["disk_read_latency_seconds"] > 0.012]
    alone = [sample for sample in samples if sample["host"]["disk_read_latency_seconds"] < 0.001]
    assert len(crowded) > 40
    assert len(alone) > 40
    assert mean_utilization(crowded) < 0.8 * mean_utilization(alone)


def mean_utilization(samples: list[JSON]) -> float:
    return fmean(sample["gpus"][0]["utilization_percent"] for sample in samples)


def test_a_throttling_card_is_hot_slow_and_says_why() -> None:
    subject = machine("sweep-4090-01")
    hot = [
        gpu for at in range(0, 900, 15) if (gpu := subject.sample(BORN_AT + at)["gpus"][0])["throttle_reasons"] & 0x20
    ]
    assert hot
    assert max(gpu["temperature_celsius"] for gpu in hot) >= 86
    assert min(gpu["sm_clock_mhz"] for gpu in hot) < 0.72 * subject.model.boost_mhz


def test_a_restart_cures_for_a_day() -> None:
    ill = machine("llm-pre-03")
    cured = replace(ill, booted_at=BORN_AT + 3600)
    assert GpuState.STALLED not in verdicts(cured, BORN_AT + 3600 + 7200)
    assert cured.boot_id != ill.boot_id
    assert cured.uuids == ill.uuids
