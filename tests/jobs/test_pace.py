"""How fast a run goes, from its newest points."""

from __future__ import annotations

import math

import pytest

from jobs.pages.charts.rows import broken
from jobs.pages.pace import Moment, Pace, pace_of


def test_steps_by_the_clock_and_the_slope_of_the_loss():
    pace = pace_of([Moment(100 + 2.5 * step, step, 3 - 0.001 * step) for step in range(0, 300, 10)])
    assert pace.seconds_per_step == pytest.approx(2.5)
    assert pace.loss_per_step == pytest.approx(-0.001)
    assert pace.seconds_left(290, 390) == pytest.approx(250)


def test_a_run_that_went_back_is_looked_at_from_there():
    before = [Moment(at, at, 1.0) for at in range(50)]
    after = [Moment(100 + 4 * number, 20 + number) for number in range(5)]
    assert pace_of([*before, *after]) == Pace(4.0, None)


@pytest.mark.parametrize("moments", [[], [Moment(1, 1)], [Moment(1, 5), Moment(9, 5)], [Moment(1, 1), Moment(1, 9)]])
def test_too_little_says_nothing(moments):
    assert pace_of(moments) == Pace()
    assert Pace().seconds_left(1, 10) is None


def test_a_loss_that_is_no_number_is_left_out():
    moments = [Moment(step, step, math.nan if step % 2 else 2.0) for step in range(40)]
    assert pace_of(moments).loss_per_step == pytest.approx(0)


def test_a_line_breaks_where_it_stays_silent():
    points = [(float(at), 1.0) for at in (0, 10, 20, 30, 500, 510)]
    assert [value for _at, value in broken(points, 1.0)] == [1.0, 1.0, 1.0, 1.0, None, 1.0, 1.0]
    assert None not in [value for _at, value in broken(points[:4], 1.0)]
