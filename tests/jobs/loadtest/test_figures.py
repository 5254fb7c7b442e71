"""Requests of a stage as figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.loadtest.figures import figures_of, percentile
from jobs.loadtest.sample import Sample

TIMES = st.floats(0, 1e6, allow_nan=False)


def test_a_request_has_its_times():
    sample = Sample(began=10, ended=12, ttft_seconds=0.5, tokens=16)
    assert (sample.seconds, sample.tpot_seconds) == (2, 0.1)
    assert Sample(10, 12, None, 16).tpot_seconds is None
    assert Sample(10, 12, 0.5, 1).tpot_seconds is None


@given(st.lists(TIMES, min_size=1), st.floats(0.1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values, rank):
    found = percentile(values, rank)
    assert found in values
    assert sum(value <= found for value in values) >= rank / 100 * len(values) - 1e-6
    assert sum(value < found for value in values) < rank / 100 * len(values) + 1e-6


@given(st.lists(TIMES, min_size=1))
def test_percentiles_rise(values):
    found = [percentile(values, rank) or 0.0 for rank in (50, 95, 99, 100)]
    assert found == sorted(found)
    assert found[-1] == max(values)


def test_nothing_has_no_percentile():
    assert percentile([], 50) is None
    figures = figures_of([], level=4, begin=0, end=10)
    assert (figures.ttft.p95, figures.requests_per_second, figures.failed_share) == (None, 0, 0)


def test_rates_count_a_request_by_its_share_of_the_stage():
    inside, beyond, before = Sample(2, 4, 1, 10), Sample(8, 12, 1, 10), Sample(-5, -1, 1, 10)
    figures = figures_of([inside, beyond, before], level=1, begin=0, end=10)
    assert figures.requests_per_second == pytest.approx(0.15)
    assert figures.tokens_per_second == pytest.approx(1.5)


@given(st.integers(1, 20), st.floats(0.05, 5), st.floats(0, 1))
def test_steady_clients_are_as_many_as_they_are_by_littles_law(clients, seconds, shift):
    """Each asks again as it is answered; wherever the stage is cut."""
    samples = [
        Sample(began, began + seconds, seconds / 2, 5)
        for client in range(clients)
        for began in [(turn - 1 + (client / clients + shift) % 1) * seconds for turn in range(round(30 / seconds) + 3)]
    ]
    figures = figures_of(samples, level=clients, begin=10, end=20)
    assert figures.at_once == pytest.approx(clients, rel=1e-6)
    assert figures.requests_per_second == pytest.approx(clients / seconds, rel=1e-6)


def test_requests_from_before_it_was_at_its_level_are_in_no_percentile():
    early, late = Sample(0, 9, 5, 10), Sample(3, 4, 0.1, 10)
    assert figures_of([early, late], level=2, begin=2, end=10).ttft.p95 == 0.1
    assert figures_of([early], level=2, begin=2, end=10).ttft.p95 == 5


def test_failures_are_counted_by_their_kind_and_in_no_time():
    figures = figures_of(
        [Sample(0, 1, 0.5, 10), Sample(0, 60, None, 3, "timeout"), Sample(0, 1, None, 0, "http_429")],
        level=1,
        begin=0,
        end=10,
        not_sent=1,
        lags=[0.001] * 19 + [0.5],
    )
    assert (figures.answered, figures.failed, figures.failed_share) == (1, 2, 0.75)
    assert figures.errors == {"timeout": 1, "http_429": 1}
    assert figures.e2e.p99 == 1
    assert figures.lag_seconds == 0.001


def test_times_that_grow_while_it_lasts_are_told():
    steady = [Sample(at, at + 2, 1, 5) for at in range(30)]
    growing = [Sample(at, at + 1 + at / 3, 1, 5) for at in range(30)]
    assert figures_of(steady, level=1, begin=0, end=30).grown == 1
    assert (figures_of(growing, level=1, begin=0, end=30).grown or 0) > 1.5
    assert figures_of(growing[:14], level=1, begin=0, end=30).grown is None
