"""While the store of readings is away, pages show what PostgreSQL knows and say why the charts are missing."""

from __future__ import annotations

import httpx
import pytest

from fleet.telemetry.store import target
from tests.fleet.telemetry.store.conftest import use
from tests.fleet.telemetry.store.fake import silent_store


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


def test_a_file_is_refused_for_the_stores_sake(machine, as_user, alice):
    for address in (f"/t/acme/instances/{machine.pk}/series/", "/t/acme/states/"):
        for chart in ("power", "states"):
            answer = as_user(alice).get(address, {"format": "csv", "chart": chart})
            assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")


def test_a_store_that_hangs_keeps_one_waiting_and_not_all(settings, machine, as_user, alice, monkeypatch):
    monkeypatch.setattr(target, "TIMEOUT", httpx.Timeout(0.2))
    with silent_store() as (url, connections):
        use(settings, write=f"{url}/write", read=url)
        for _ in range(2):
            assert as_user(alice).get(f"/t/acme/instances/{machine.pk}/").status_code == 200
            assert as_user(alice).get("/t/acme/states/").status_code == 200
        assert connections() == 1
