"""Calls of one key are kept apart, those of others are not held up."""

from __future__ import annotations

import pytest

from fleet.providers import pace
from fleet.providers.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


def test_the_first_call_waits_for_nobody(clock):
    Pace(1.0).wait("a")
    assert clock.slept == []


def test_the_next_calls_take_their_turns(clock):
    kept = Pace(1.0)
    for _ in range(3):
        kept.wait("a")
    assert clock.slept == [1.0, 1.0]


def test_who_comes_late_does_not_wait(clock):
    kept = Pace(1.0)
    kept.wait("a")
    clock.now += 5
    kept.wait("a")
    assert clock.slept == []


def test_another_key_has_its_own_turns(clock):
    kept = Pace(1.0)
    kept.wait("a")
    kept.wait("b")
    assert clock.slept == []
