"""No load test is begun beyond its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.loadtest.plan import MOST_AT_ONCE, MOST_SECONDS, MOST_STAGES, LoadPlan, Loop, PlanProblem, doubling


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"levels": ()}, "levels", "stages"),
        ({"levels": tuple(range(1, 20))}, "levels", "stages"),
        ({"levels": (1, 2, 2)}, "levels", "rising"),
        ({"levels": (4, 2)}, "levels", "rising"),
        ({"levels": (0.5, 1)}, "levels", "whole"),
        ({"levels": (float("nan"),)}, "levels", "level"),
        ({"levels": (float("inf"),), "loop": Loop.OPEN}, "levels", "level"),
        ({"levels": (1, MOST_AT_ONCE + 1)}, "levels", "level"),
        ({"levels": (1, 1e9), "loop": Loop.OPEN}, "levels", "level"),
        ({"levels": (0, 1), "loop": Loop.OPEN}, "levels", "level"),
        ({"stage_seconds": 0.1}, "stage_seconds", "range"),
        ({"stage_seconds": float("nan")}, "stage_seconds", "range"),
        ({"stage_seconds": 300, "levels": (1, 2, 3)}, "stage_seconds", "too_long"),
        ({"prompt_tokens": 0}, "prompt_tokens", "range"),
        ({"answer_tokens": 10**6}, "answer_tokens", "range"),
        ({"request_seconds": 601}, "request_seconds", "range"),
        ({"most_requests": 10**6}, "most_requests", "range"),
        ({"promise_ttft_seconds": 0}, "promise_ttft_seconds", "range"),
    ],
)
def test_what_is_beyond_a_bound_is_refused_by_its_field(changes, field, code):
    with pytest.raises(PlanProblem) as refused:
        LoadPlan(**({"loop": Loop.CLOSED, "levels": (1, 2, 4)} | changes)).check()
    assert (refused.value.field, refused.value.code) == (field, code)


def test_what_keeps_them_is_not():
    LoadPlan(Loop.CLOSED, (1, 2, 4)).check()
    LoadPlan(Loop.OPEN, (0.5, 1.5), promise_ttft_seconds=0.5).check()


@given(st.integers(1, MOST_AT_ONCE))
def test_doubling_rises_to_the_most(most):
    levels = doubling(most)
    plan = LoadPlan(Loop.CLOSED, levels)
    plan.check()
    assert levels[-1] == most
    assert len(levels) <= MOST_STAGES
    assert plan.whole_seconds <= MOST_SECONDS
