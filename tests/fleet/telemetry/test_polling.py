"""Live values for browsers without a websocket: the same messages, asked for."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from fleet.telemetry.models import Agent, GpuLatest, HostLatest
from tests.fleet.telemetry.conftest import enrolled

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(make_instance):
    instance = make_instance(gpus=1)
    moment = datetime.now(UTC) - timedelta(seconds=3)
    latest = {"sampled_at": moment, "received_at": moment}
    GpuLatest.objects.create(gpu=instance.gpus.get(), utilization_percent=90.0, memory_used_bytes=1, **latest)
    HostLatest.objects.create(instance=instance, load1=2.0, **latest)
    enrolled(instance)
    Agent.objects.update(heartbeat_at=moment, nvml_state="ok")
    return instance


def test_what_is_newer_than_since_is_told_in_the_sockets_own_words(machine, vera, as_user):
    answer = as_user(vera).get("/t/acme/live/", {"since": time.time() - 60, "machines": machine.pk})
    sample, beat = answer.json()["messages"]
    assert (sample["type"], sample["machine"]) == ("sample", machine.pk)
    (told,) = sample["samples"]
    assert told["host"]["load1"] == 2.0
    ((gpu_id, reading),) = told["gpus"].items()
    assert (gpu_id, reading["utilization_percent"], reading["state"]) == (str(machine.gpus.get().pk), 90.0, "working")
    assert (beat["type"], beat["nvml"]) == ("heartbeat", "ok")
    assert answer.json()["now"] == pytest.approx(time.time(), abs=60)
    assert "no-store" in answer.headers["Cache-Control"]


def test_what_is_not_newer_is_not_told(machine, vera, as_user):
    assert as_user(vera).get("/t/acme/live/", {"since": time.time()}).json()["messages"] == []


def test_another_teams_machine_does_not_exist(machine, charlie, as_user):
    browser = as_user(charlie)
    assert browser.get("/t/acme/live/").status_code == 404
    assert browser.get("/t/rival/live/", {"machines": machine.pk}).status_code == 404
    assert browser.get("/t/rival/live/").json()["messages"] == []


@pytest.mark.parametrize(
    "query", [{"since": "yesterday"}, {"since": "nan"}, {"machines": "x"}, {"machines": "-1"}, {"machines": "9" * 30}]
)
def test_a_query_that_means_nothing_is_refused(acme, vera, as_user, query):
    answer = as_user(vera).get("/t/acme/live/", query)
    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["detail"]


def test_any_number_is_a_moment(acme, vera, as_user):
    for since in ("1e300", "-1e300", "0"):
        assert as_user(vera).get("/t/acme/live/", {"since": since}).status_code == 200
