"""Faults that belong together are one, a day is scored only where enough was read, and a provider only from enough GPU-days on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.quality.health.score import (
    FAULT_KINDS,
    Happening,
    Kind,
    Sums,
    counts_of,
    day_score,
    faults_per_100_gpu_days,
    stars,
)

AT = datetime(2026, 11, 17, 8, tzinfo=UTC)
DAY_SECONDS = 86_400.0


def at(minutes: float, kind: Kind) -> Happening:
    return Happening(AT + timedelta(minutes=minutes), kind)


def test_a_lost_card_with_its_xid_and_reset_is_one_fault():
    found = counts_of([at(1, Kind.LOST), at(0, Kind.XID), at(40, Kind.RESET)])
    assert found == {"xid": 1, "lost": 1, "reset": 1, "faults": 1}


def test_faults_hours_apart_are_several():
    assert counts_of([at(0, Kind.XID), at(90, Kind.XID), at(300, Kind.ECC)])["faults"] == 3


def test_what_programs_do_wrong_is_counted_and_no_fault():
    assert counts_of([at(0, Kind.PROGRAM_XID), at(1, Kind.UNREACHABLE), at(2, Kind.FAILED_START)]) == {
        "program_xid": 1,
        "unreachable": 1,
        "failed_start": 1,
    }
    assert Kind.PROGRAM_XID not in FAULT_KINDS


def score(gpu_hours: float = 24, faults: int = 0, throttled: float = 0, lost: float = 0) -> int | None:
    return day_score(gpu_hours, faults=faults, throttled_seconds=throttled, lost_seconds=lost)


def test_a_day_without_anything_is_100_and_faults_heat_and_loss_cost():
    assert score() == 100
    assert score(faults=1) == 70
    assert score(throttled=12 * 3600) == 80
    assert score(lost=12 * 3600) == 70
    assert score(faults=9) == 0


@pytest.mark.parametrize("gpu_hours", [0, 0.5])
def test_a_day_of_which_little_was_read_has_no_score(gpu_hours):
    assert score(gpu_hours, faults=1) is None


@pytest.mark.parametrize(
    ("gpu_days", "faults", "expected"),
    [
        (29.9, 5, None),
        (30, 0, 3),
        (30, 1, 2),
        (100, 0, 4),
        (412, 1, 4),
        (500, 0, 5),
        (500, 10, 2),
        (500, 40, 1),
        (20_000, 15, 5),
    ],
)
def test_stars_follow_faults_and_few_days_stay_near_the_middle(gpu_days, faults, expected):
    assert stars(Sums(gpu_days, faults)) == expected


def test_with_more_days_what_was_measured_counts_more():
    rates = [faults_per_100_gpu_days(Sums(days, days // 50)) for days in (50, 500, 50_000)]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(2.0, rel=0.01)


def test_much_heat_and_much_loss_cost_a_star_each():
    assert stars(Sums(500, 0, throttled_seconds=0.06 * 500 * DAY_SECONDS)) == 4
    assert stars(Sums(500, 0, 0.06 * 500 * DAY_SECONDS, lost_seconds=0.02 * 500 * DAY_SECONDS)) == 3
    assert stars(Sums(500, 90, 400 * DAY_SECONDS, 400 * DAY_SECONDS)) == 1
