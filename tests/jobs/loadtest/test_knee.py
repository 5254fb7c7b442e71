"""The knee of a load test: where more load is answered by waiting alone."""

from __future__ import annotations

import itertools
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.loadtest.figures import Percentiles, StageFigures
from jobs.loadtest.knee import Knee, find_knee, worth
from jobs.loadtest.plan import LoadPlan, Loop

CLOSED = LoadPlan(Loop.CLOSED, (1, 2, 4, 8, 16, 32))
OPEN = LoadPlan(Loop.OPEN, (1, 2, 4, 8))


def stage(level: float, rate: float, **more) -> StageFigures:
    seconds = level / rate if rate else 0
    fields: dict[str, Any] = {
        "seconds": 20,
        "answered": ceil(rate * 20),
        "failed": 0,
        "not_sent": 0,
        "requests_per_second": rate,
        "tokens_per_second": 100 * rate,
        "at_once": level,
        "ttft": Percentiles(0.1, 0.2, 0.3),
        "tpot": Percentiles(0.01, 0.02, 0.03),
        "e2e": Percentiles(seconds, seconds, seconds),
    }
    return StageFigures(level=level, **(fields | more))


def server(places: int, seconds: float, levels=CLOSED.levels) -> list[StageFigures]:
    """One that has so many places, each busy for as long with a request."""
    return [stage(level, min(level, places) / seconds) for level in levels]


@pytest.mark.parametrize("places", [1, 2, 4, 8, 16])
def test_a_server_with_so_many_places_has_its_knee_there(places):
    assert find_knee(CLOSED, server(places, 2.0)) == Knee(CLOSED.levels.index(places), "flat")


def test_one_that_can_do_more_than_was_asked_has_none():
    assert find_knee(CLOSED, server(100, 2.0)) == Knee(5, "")


def test_less_and_less_gain_ends_where_half_of_the_growth_is_lost():
    rates = [1.0, 1.9, 3.4, 5.0, 6.0, 6.1]
    stages = [stage(level, rate) for level, rate in zip(CLOSED.levels, rates, strict=True)]
    assert [round(worth(former, later), 2) for former, later in itertools.pairwise(stages)] == [
        0.93,
        0.84,
        0.56,
        0.26,
        0.02,
    ]
    assert find_knee(CLOSED, stages) == Knee(3, "flat")


@pytest.mark.parametrize(
    ("more", "past"),
    [
        ({"failed": 3}, "failed"),
        ({"not_sent": 3}, "failed"),
        ({"answered": 0}, "failed"),
        ({"ttft": Percentiles(0.1, 0.6, 0.9)}, "ttft"),
        ({"tpot": Percentiles(0.01, 0.06, 0.09)}, "tpot"),
        ({"lag_seconds": 0.2}, "tester"),
    ],
)
def test_a_broken_promise_or_failed_requests_are_past_it(more, past):
    plan = LoadPlan(Loop.CLOSED, (1, 2, 4), promise_ttft_seconds=0.5, promise_tpot_seconds=0.05)
    assert find_knee(plan, [stage(1, 1), stage(2, 2), stage(4, 4, **more)]) == Knee(1, past)


def test_a_first_stage_that_is_not_kept_leaves_no_knee():
    assert find_knee(CLOSED, [stage(1, 1, failed=20)]) == Knee(None, "failed")
    assert find_knee(CLOSED, []) == Knee(None, "")


def test_an_open_stage_whose_times_grow_while_it_lasts_is_behind():
    stages = [stage(1, 1, grown=1.0), stage(2, 2, grown=1.1), stage(4, 3.1, grown=1.7), stage(8, 3.0, grown=1.8)]
    assert find_knee(OPEN, stages) == Knee(1, "behind")
    # Its throughput is what was asked of it: that it does not grow by itself says nothing.
    assert find_knee(OPEN, [stage(1, 1, grown=1.0), stage(2, 1.2, grown=None)]) == Knee(1, "")


@given(
    st.integers(1, 32),
    st.floats(0.01, 60),
    st.lists(st.integers(1, 256), min_size=1, max_size=12, unique=True).map(sorted),
)
def test_the_knee_never_lies_beyond_the_places_by_more_than_a_stage(places, seconds, levels):
    knee = find_knee(CLOSED, server(places, seconds, levels))
    assert knee.stage is not None
    # A stage whose growth beyond the places is less than it was up to them may still be taken, none after it.
    taken = [level for level in levels[: knee.stage + 1] if level > places]
    assert len(taken) <= 1 or taken[0] == levels[0]


@given(st.floats(0.1, 10), st.lists(st.integers(1, 200), min_size=2, max_size=10, unique=True).map(sorted))
def test_it_does_not_depend_on_the_unit_of_throughput(factor, levels):
    stages = [stage(level, min(level, 20) / (1 + level / 50)) for level in levels]
    scaled = [stage(one.level, one.requests_per_second * factor) for one in stages]
    if all(one.answered for one in (*stages, *scaled)):
        assert find_knee(CLOSED, stages) == find_knee(CLOSED, scaled)
