"""Serving endpoints over the API: found by their last request, and their figures over time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.serving.models import ServingLatest, ServingSample

SERIES = "/api/v1/samples/serving/"


@pytest.fixture
def endpoint(fleet) -> ServingLatest:
    ensure_partitions(now=timezone.now())
    return ServingLatest.objects.get()


@pytest.fixture
def ask(acme, as_token):
    return as_token(acme).get


def test_endpoints_with_and_without_requests_are_told_apart(endpoint, fleet, ask):
    now = timezone.now()
    ServingLatest.objects.create(instance=fleet.bare, engine="tgi", port=3000, last_request_at=now)
    assert [row["engine"] for row in ask("/api/v1/serving/", {"never_requested": "true"}).json()["results"]] == ["vllm"]
    since = {"requested_since": (now - timedelta(hours=1)).isoformat()}
    assert [row["engine"] for row in ask("/api/v1/serving/", since).json()["results"]] == ["tgi"]


def test_figures_are_rates_and_means(endpoint, ask):
    at = timezone.now() - timedelta(minutes=5)
    for step in range(3):
        ServingSample.objects.create(
            endpoint=endpoint,
            sampled_at=at + timedelta(seconds=10 * step),
            interval_seconds=10.0,
            requests_finished=20,
            ttft_seconds_sum=4.0,
            ttft_count=20,
            ttft_seconds_p95=0.1 * step,
            requests_running=step,
        )
    fields = "requests_per_second,ttft_seconds,ttft_seconds_p95,requests_running"
    told = ask(SERIES, {"endpoint": endpoint.pk, "fields": fields, "max_points": 3}).json()
    assert told["resolution"] == "raw"
    (series,) = told["series"]
    known = {name: [value for value in values if value is not None] for name, values in series["values"].items()}
    assert known == {
        "requests_per_second": [2.0],
        "ttft_seconds": [0.2],
        "ttft_seconds_p95": [0.2],
        "requests_running": [1.0],
    }


def test_a_machine_names_all_its_endpoints(endpoint, fleet, ask):
    told = ask(SERIES, {"instance": fleet.instance.pk}).json()
    assert [(one["endpoint"], one["instance"]) for one in told["series"]] == [(endpoint.pk, fleet.instance.pk)]


@pytest.mark.parametrize(
    ("parameters", "status", "field"),
    [
        ({}, 400, "endpoint"),
        ({"endpoint": "x"}, 400, "endpoint"),
        ({"endpoint": 999}, 404, "endpoint"),
        ({"instance": 999}, 404, "instance"),
        ({"endpoint": 0}, 400, "endpoint"),
        ({"instance": "1", "fields": "colour"}, 404, "instance"),
        ({"endpoint": "1", "statistic": "mean"}, 400, "statistic"),
    ],
)
def test_bad_questions_name_their_parameter(endpoint, ask, parameters, status, field):
    answer = ask(SERIES, parameters)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


def test_another_teams_endpoint_does_not_exist(endpoint, rival, as_token):
    assert as_token(rival).get(SERIES, {"endpoint": endpoint.pk}).status_code == 404
