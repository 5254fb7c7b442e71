"""Figures of serving endpoints over short and long spans, on pages and beside their latest readings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.serving.listing import endpoints_of, labels
from fleet.telemetry.serving.models import ServingLatest, ServingRollupFiveMinutes, ServingSample
from fleet.telemetry.serving.series import serving_series

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def machine(make_instance) -> Instance:
    ensure_partitions(now=NOW, since=NOW - timedelta(days=2))
    instance: Instance = make_instance()
    return instance


def endpoint(machine: Instance, **fields: Any) -> ServingLatest:
    told = {"engine": "vllm", "model": "org/llama", "port": 8000, "sampled_at": NOW, **fields}
    return ServingLatest.objects.create(instance=machine, **told)


def sample(one: ServingLatest, age: float, **fields: Any) -> None:
    ServingSample.objects.create(endpoint=one, sampled_at=NOW - timedelta(seconds=age), **fields)


def figures(one: ServingLatest, *fields: str, hours: float) -> tuple[str, dict[str, list[float]]]:
    found = serving_series(
        endpoint_ids=[one.pk], fields=fields, since=NOW - timedelta(hours=hours), until=NOW, max_points=50
    )
    known = {name: [value for value in values if value is not None] for name, values in found.values[one.pk].items()}
    return found.resolution, known


def test_a_rate_is_what_grew_over_the_time_in_which_it_grew(machine):
    one = endpoint(machine)
    sample(one, 100, interval_seconds=10, requests_finished=30)
    sample(one, 90, interval_seconds=20, requests_finished=0)
    sample(one, 80, requests_running=2)
    assert figures(one, "requests_per_second", hours=6) == ("raw", {"requests_per_second": [1.0]})


def test_no_requests_are_no_latency_and_not_none(machine):
    one = endpoint(machine)
    sample(one, 100, interval_seconds=10, requests_finished=0, ttft_count=0, ttft_seconds_sum=0)
    assert figures(one, "requests_per_second", "ttft_seconds", hours=6)[1] == {
        "requests_per_second": [0.0],
        "ttft_seconds": [],
    }


def test_a_long_span_reads_sums(machine):
    one = endpoint(machine)
    ServingRollupFiveMinutes.objects.create(
        endpoint=one,
        bucket_at=NOW - timedelta(hours=20),
        samples=30,
        interval_seconds=300,
        requests_finished=600,
        e2e_seconds_sum=1200,
        e2e_count=600,
        e2e_seconds_p95=9.5,
        kv_cache_ratio_total=15.0,
        kv_cache_ratio_readings=30,
    )
    resolution, known = figures(
        one, "requests_per_second", "e2e_seconds", "e2e_seconds_p95", "kv_cache_ratio", hours=24
    )
    assert resolution == "5min"
    assert known == {
        "requests_per_second": [2.0],
        "e2e_seconds": [2.0],
        "e2e_seconds_p95": [9.5],
        "kv_cache_ratio": [0.5],
    }


def test_an_unknown_figure_is_refused_by_name(machine):
    with pytest.raises(ValueError, match="colour"):
        figures(endpoint(machine), "colour", hours=1)


class TestPages:
    def test_the_machines_page_shows_endpoints_and_charts(self, machine, vera, as_user):
        one = endpoint(
            machine,
            model="<b>org/ll&ma",
            interval_seconds=10.0,
            requests_finished=25,
            requests_running=3,
            ttft_seconds_p50=0.08,
            ttft_seconds_p95=0.24,
            kv_cache_ratio=0.42,
            last_request_at=NOW,
        )
        sample(one, 60, interval_seconds=10, requests_finished=25, kv_cache_ratio=0.42)
        page = as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text
        assert "ll&amp;ma" in page
        assert "<b>org" not in page
        for words in (
            "2.50/s",
            "3 running",
            "80.0 ms, p95 240 ms",
            "42.0%",
            "Serving: requests",
            "Serving: KV cache",
        ):
            assert words in page
        assert "Serving: time to first token" not in page

    def test_the_charts_file_is_given_too(self, machine, vera, as_user):
        sample(endpoint(machine), 60, requests_running=3)
        answer = as_user(vera).get(f"/t/acme/instances/{machine.pk}/series/?span=1h&chart=serving_load&format=csv")
        assert answer.status_code == 200
        assert b"running" in b"".join(answer.streaming_content if answer.streaming else [answer.content])

    def test_a_machine_without_endpoints_says_nothing_of_them(self, machine, vera, as_user):
        assert "Serving" not in as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text


def test_names_are_short_and_tell_replicas_apart(machine):
    rows = [endpoint(machine), endpoint(machine, port=8001), endpoint(machine, engine="tgi", model="", port=3000)]
    assert labels(rows) == ["llama :8000", "llama :8001", "TGI"]


def test_the_busiest_come_first_and_the_long_silent_not_at_all(machine):
    endpoint(machine, model="never")
    endpoint(machine, model="old", last_request_at=NOW - timedelta(hours=1))
    endpoint(machine, model="new", last_request_at=NOW)
    endpoint(machine, model="gone", sampled_at=NOW - timedelta(days=8))
    assert [one.label for one in endpoints_of(machine, now=NOW)] == ["new", "old", "never"]
