from __future__ import annotations

import pytest
from django.test import Client

from fleet.inventory.api.machines import InstanceViewSet
from fleet.teams.models import Scope

SHAPE = {"error", "detail", "field"}


@pytest.mark.parametrize(
    ("path", "code", "error"),
    [
        ("/api/v1/instances/?limit=x", 400, "invalid"),
        ("/api/v1/instances/999999/", 404, "not_found"),
        ("/api/v1/instances/x/", 404, "not_found"),
        ("/api/v1/instances/99999999999999999999999/", 404, "not_found"),
        ("/api/v1/instances", 404, "not_found"),
        ("/api/v1/nothing/", 404, "not_found"),
        ("/api/v2/", 404, "not_found"),
        ("/api/", 404, "not_found"),
        ("/api", 404, "not_found"),
    ],
)
def test_refusals_have_one_shape(acme, as_token, path, code, error):
    answer = as_token(acme).get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (code, "application/json")
    assert set(answer.json()) == SHAPE
    assert answer.json()["error"] == error
    assert answer.json()["detail"]


def test_an_answer_in_another_format_is_refused(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]) == (406, "not_acceptable")


def test_more_parameters_than_django_reads_are_a_bad_request(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/?" + "&".join(f"p{number}=1" for number in range(1100)))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid")


def test_a_body_that_is_no_json_is_a_405_for_who_may_write(acme, as_token):
    answer = as_token(acme, Scope.OPERATE).post("/api/v1/instances/", "{", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


def test_there_is_no_second_description(acme, as_token):
    assert as_token(acme).options("/api/v1/instances/").json()["error"] == "method_not_allowed"


def test_no_cache_on_the_way_keeps_an_answer(fleet, acme, as_token, client):
    for caller in (as_token(acme), client):
        assert caller.get("/api/v1/instances/").headers["Cache-Control"] == "no-store"


def test_a_failure_of_ours_is_json_without_details(acme, as_token, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("postgresql://rackrent:hunter2@db")

    monkeypatch.setattr(InstanceViewSet, "get_queryset", fail)
    client: Client = as_token(acme)
    client.raise_request_exception = False
    answer = client.get("/api/v1/instances/")
    assert (answer.status_code, answer.json()["error"]) == (500, "server_error")
    assert "hunter2" not in answer.text
    assert "RuntimeError" in caplog.text


def test_refusals_speak_the_language_asked_for(acme, as_token):
    answer = as_token(acme).get("/api/v1/instances/", {"limit": "x"}, headers={"Accept-Language": "zh-hans"})
    assert answer.json()["detail"] == "请填写 1 到 500 之间的整数。"
