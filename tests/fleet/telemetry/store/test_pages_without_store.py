"""While the store of readings is away, pages show what PostgreSQL knows and say why the charts are missing."""

from __future__ import annotations

import pytest

from tests.fleet.telemetry.store.conftest import use


@pytest.fixture
def machine(settings, make_instance):
    use(settings, write="http://127.0.0.1:9/write", read="http://127.0.0.1:9")
    return make_instance(gpus=1)


def test_the_page_of_a_machine_says_why_it_has_no_charts(machine, as_user, alice):
    answer = as_user(alice).get(f"/t/acme/instances/{machine.pk}/")
    assert answer.status_code == 200
    assert "the store of readings cannot be reached just now" in answer.text
    assert "train-01" in answer.text


def test_the_overview_is_there(machine, as_user, alice):
    assert as_user(alice).get("/t/acme/").status_code == 200


def test_the_api_says_503_and_not_that_there_were_no_readings(machine, as_user, alice):
    answer = as_user(alice).get(f"/api/v1/samples/gpus/?instance={machine.pk}")
    assert answer.status_code == 503
    assert answer.json()["error"] == "unavailable"
