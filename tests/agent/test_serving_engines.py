"""What engines say, by engine: gauges as they are, counters as growth, latencies from their buckets."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agent.serving.engines import PREFIXES
from agent.serving.page import parse_page
from agent.serving.readings import Growth, quantile, read_models
from tests.agent import engine_pages


class Watched:
    """One page over time."""

    def __init__(self) -> None:
        self.growth = Growth()

    def rows(self, at: float, text: str) -> list[dict[str, Any]]:
        return self.growth.rows("127.0.0.1:8000", at, read_models(parse_page(text, PREFIXES)))

    def row(self, at: float, text: str) -> dict[str, Any]:
        (row,) = self.rows(at, text)
        return row


@pytest.fixture
def page() -> Watched:
    return Watched()


def test_the_first_page_has_only_what_is_so_now(page: Watched) -> None:
    assert page.row(100.0, engine_pages.vllm()) == {
        "engine": "vllm",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "requests_running": 3.0,
        "requests_waiting": 1.0,
        "kv_cache_ratio": 0.25,
    }


def test_vllm_from_one_page_to_the_next(page: Watched) -> None:
    page.rows(100.0, engine_pages.vllm())
    row = page.row(
        110.0, engine_pages.vllm(stopped=118, aborted=2, prompt=56_000, generated=21_000, ttft=(70, 108, 120))
    )
    assert (row["interval_seconds"], row["requests_finished"], row["requests_failed"]) == (10.0, 20, 2)
    assert (row["prompt_tokens"], row["generation_tokens"]) == (6_000, 1_000)
    assert (row["ttft_count"], row["ttft_seconds_sum"]) == (20, pytest.approx(2.4))
    # Ten of twenty came within 0.1 s; the nineteenth lies half way between 0.5 and 1.0.
    assert (row["ttft_seconds_p50"], row["ttft_seconds_p95"]) == (pytest.approx(0.1), pytest.approx(0.75))
    assert row["tpot_count"] == 1_000
    assert row["e2e_seconds_sum"] == pytest.approx(40.0)


def test_an_older_vllm_calls_its_cache_otherwise(page: Watched) -> None:
    text = engine_pages.vllm(cache_name="vllm:gpu_cache_usage_perc", cache=0.75)
    assert page.row(1.0, text)["kv_cache_ratio"] == 0.75


def test_engines_that_share_a_model_count_together(page: Watched) -> None:
    def both(stopped: float) -> str:
        return engine_pages.vllm(engine="0", stopped=stopped) + engine_pages.vllm(engine="1", stopped=50, cache=0.75)

    page.rows(100.0, both(100))
    row = page.row(110.0, both(108))
    assert (row["requests_running"], row["kv_cache_ratio"], row["requests_finished"]) == (6.0, 0.5, 8)


def test_models_are_told_apart_and_are_sixteen_at_most(page: Watched) -> None:
    text = "".join(engine_pages.vllm(model=f"model-{number:02}") for number in range(30))
    assert [row["model"] for row in page.rows(1.0, text)] == [f"model-{number:02}" for number in range(16)]


def test_tgi(page: Watched) -> None:
    assert page.row(100.0, engine_pages.tgi()) == {
        "engine": "tgi",
        "model": "",
        "requests_running": 5.0,
        "requests_waiting": 2.0,
    }
    row = page.row(110.0, engine_pages.tgi(success=50, failed=3, generated=9_500))
    assert (row["requests_finished"], row["requests_failed"]) == (13, 3)
    assert (row["prompt_tokens"], row["generation_tokens"]) == (1_000, 1_500)
    assert row["tpot_seconds_sum"] == pytest.approx(0.1)
    assert "ttft_count" not in row
    assert "kv_cache_ratio" not in row


def test_trtllm_serve_counts_its_first_request_though_the_counter_was_not_there(page: Watched) -> None:
    page.rows(100.0, engine_pages.trtllm(success=None))
    row = page.row(110.0, engine_pages.trtllm(success=1, errors=2))
    assert (row["requests_finished"], row["requests_failed"], row["prompt_tokens"]) == (3, 2, 100)
    assert (row["requests_running"], row["kv_cache_ratio"]) == (4.0, 0.5)


def test_triton_with_tensorrt_llm(page: Watched) -> None:
    page.rows(100.0, engine_pages.triton())
    row = page.row(110.0, engine_pages.triton(success=12, failed=1, spent_us=14.5e6))
    assert (row["engine"], row["model"]) == ("triton", "tensorrt_llm")
    assert (row["requests_running"], row["requests_waiting"], row["kv_cache_ratio"]) == (8.0, 3.0, 0.6)
    assert (row["requests_finished"], row["requests_failed"]) == (6, 1)
    assert (row["e2e_count"], row["e2e_seconds_sum"]) == (5, pytest.approx(7.5))
    assert "e2e_seconds_p95" not in row
    assert "prompt_tokens" not in row


def test_an_engine_without_requests_says_none_and_not_nothing(page: Watched) -> None:
    page.rows(100.0, engine_pages.vllm())
    row = page.row(110.0, engine_pages.vllm())
    assert (row["requests_finished"], row["prompt_tokens"], row["ttft_count"]) == (0, 0, 0)
    assert "ttft_seconds_p50" not in row


class TestResets:
    def test_an_engine_that_was_started_anew_gives_no_growth(self, page: Watched) -> None:
        page.rows(100.0, engine_pages.vllm(stopped=100))
        row = page.row(110.0, engine_pages.vllm(stopped=2))
        assert "requests_finished" not in row
        assert "interval_seconds" not in row
        assert row["requests_running"] == 3.0
        assert page.row(120.0, engine_pages.vllm(stopped=5))["requests_finished"] == 3

    def test_a_counter_that_vanished_is_one(self, page: Watched) -> None:
        page.rows(100.0, engine_pages.trtllm(success=0))
        assert "requests_finished" not in page.row(110.0, engine_pages.trtllm(success=None))

    def test_growth_over_a_long_silence_says_nothing_of_now(self, page: Watched) -> None:
        page.rows(100.0, engine_pages.vllm())
        assert "requests_finished" not in page.row(300.0, engine_pages.vllm(stopped=200))

    def test_a_page_that_was_forgotten_begins_anew(self, page: Watched) -> None:
        page.rows(100.0, engine_pages.vllm())
        page.growth.forget("127.0.0.1:8000")
        assert "requests_finished" not in page.row(110.0, engine_pages.vllm(stopped=200))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vllm:num_requests_running",
        "vllm:num_requests_running NaN",
        "vllm:num_requests_running -1",
        "vllm:num_requests_running +Inf",
        'vllm:num_requests_running{model_name="a" 3',
        "<html>vllm:</html>",
        'vllm:time_to_first_token_seconds_bucket{le="x"} 3\nvllm:time_to_first_token_seconds_sum NaN',
        "node_cpu_seconds_total 1",
    ],
)
def test_what_is_no_reading_is_left_out(page: Watched, text: str) -> None:
    for at in (1.0, 11.0):
        for row in page.rows(at, text):
            assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))
            assert "requests_running" not in row
            assert "ttft_seconds_sum" not in row


def test_a_models_name_may_hold_anything(page: Watched) -> None:
    row = page.row(1.0, 'vllm:num_requests_running{model_name="a\\"},b=\\\\ \\n{",engine="0"} 2\n')
    assert row["model"] == 'a"},b=\\ \n{'


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ([], 0.5, None),
        ([(1.0, 0.0), (math.inf, 0.0)], 0.5, None),
        ([(1.0, 10.0), (math.inf, 10.0)], 0.5, 0.5),
        ([(1.0, 0.0), (2.0, 10.0), (math.inf, 10.0)], 0.95, 1.95),
        ([(1.0, 1.0), (math.inf, 10.0)], 0.95, 1.0),
        ([(math.inf, 10.0)], 0.5, 0.0),
    ],
)
def test_quantiles(buckets: list[tuple[float, float]], share: float, expected: float | None) -> None:
    assert quantile(buckets, share) == (expected if expected is None else pytest.approx(expected))
