"""Pages of serving engines, read by a worker: as the agent reads them, bounded, and stored as the agent's are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from agent.serving.engines import PREFIXES
from agent.serving.page import parse_page
from agent.serving.readings import Growth, read_models
from fleet.telemetry.scrape.page import NotMetricsError
from fleet.telemetry.serving.columns import COLUMNS
from fleet.telemetry.serving.from_page import MOST_COUNTERS, MOST_MODELS, read_page
from fleet.telemetry.serving.keep import keep_readings
from fleet.telemetry.serving.models import ServingLatest, ServingRollupFiveMinutes, ServingSample
from tests.agent import engine_pages

T = 1_790_000_000.0


def of_agent(first: str, second: str) -> list[dict[str, object]]:
    growth = Growth()
    growth.rows("page", 100.0, read_models(parse_page(first, PREFIXES)))
    return growth.rows("page", 110.0, read_models(parse_page(second, PREFIXES)))


def of_worker(first: str, second: str) -> list[dict[str, object]]:
    _readings, memory = read_page(first, port=8000, memory={}, at=T)
    readings, _memory = read_page(second, port=8000, memory=memory, at=T + 10)
    names = ("engine", "model", *COLUMNS)
    return [{name: value for name in names if (value := getattr(one, name)) is not None} for one in readings]


PAGES = {
    "vllm": (
        engine_pages.vllm(),
        engine_pages.vllm(stopped=118, aborted=2, prompt=56_000, generated=21_000, ttft=(70, 108, 120)),
    ),
    "vllm, two engines of one model": (
        engine_pages.vllm() + engine_pages.vllm(engine="1", cache=0.75),
        engine_pages.vllm(stopped=110) + engine_pages.vllm(engine="1", stopped=104, cache=0.5),
    ),
    "vllm 0.6": (engine_pages.vllm(cache_name="vllm:gpu_cache_usage_perc"),) * 2,
    "tgi": (engine_pages.tgi(), engine_pages.tgi(success=52, failed=3, generated=9_000)),
    "trtllm": (engine_pages.trtllm(success=None), engine_pages.trtllm(success=14, errors=1)),
    "triton": (engine_pages.triton(), engine_pages.triton(success=9, failed=1, spent_us=9e6)),
}


@pytest.mark.parametrize("pages", PAGES.values(), ids=PAGES)
def test_it_is_read_as_the_agent_reads_it(pages):
    assert of_worker(*pages) == [pytest.approx(row) for row in of_agent(*pages)]


def test_counters_that_went_back_and_a_long_silence_say_nothing_of_growth():
    page = engine_pages.vllm
    _first, memory = read_page(page(stopped=100), port=8000, memory={}, at=T)
    reset, _memory = read_page(page(stopped=3), port=8000, memory=memory, at=T + 10)
    late, _memory = read_page(page(stopped=200), port=8000, memory=memory, at=T + 600)
    assert [(one[0].interval_seconds, one[0].requests_running) for one in (reset, late)] == [(None, 3.0), (None, 3.0)]


def test_what_a_hostile_page_names_without_end_is_bounded():
    many = "".join(engine_pages.vllm(model=f"m{number:03}") for number in range(60))
    assert len(read_page(many, port=1, memory={}, at=T)[0]) == MOST_MODELS
    bounds = {f"{number}": 1.0 for number in range(5_000)} | {"+Inf": 1.0}
    text = engine_pages.histogram("vllm:e2e_request_latency_seconds", 'model_name="m"', bounds, 1.0)
    _readings, memory = read_page(text, port=1, memory={}, at=T)
    assert len(memory["counters"]["vllm m"]) == MOST_COUNTERS
    with pytest.raises(NotMetricsError):
        read_page("vllm:num_requests_running 1\n" * 30_000, port=1, memory={}, at=T)


def test_a_value_that_cannot_be_costs_itself_alone():
    text = engine_pages.vllm(cache=7.0, running=1e12)
    (reading,) = read_page(text, port=1, memory={}, at=T)[0]
    assert (reading.kv_cache_ratio, reading.requests_running, reading.requests_waiting) == (None, None, 1.0)


@pytest.mark.parametrize("text", ["", "<html>no</html>", "up 1\n"])
def test_a_page_of_something_else_has_no_readings(text):
    assert read_page(text, port=1, memory={}, at=T)[0] == []


@pytest.mark.django_db
def test_readings_are_stored_once_with_their_sums(make_instance):
    machine, at = make_instance(), timezone.now() - timedelta(minutes=10)
    _first, memory = read_page(engine_pages.vllm(), port=8000, memory={}, at=at.timestamp() - 10)
    readings, _memory = read_page(engine_pages.vllm(stopped=103), port=8000, memory=memory, at=at.timestamp())
    for _again in range(2):
        keep_readings(instance_id=machine.pk, readings=readings, at=at)
    latest = ServingLatest.objects.get()
    assert (latest.port, latest.requests_finished, latest.sampled_at, latest.last_request_at) == (8000, 3, at, at)
    assert ServingSample.objects.count() == 1
    assert ServingRollupFiveMinutes.objects.get().requests_finished == 3
