from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.providers.base import InstanceState
from fleet.telemetry.models import GpuLatest


@pytest.fixture
def now_of(fleet, acme, as_token):
    """now_of(instance) -> what the API says that it does now."""
    return lambda instance: as_token(acme).get(f"/api/v1/latest/{instance.pk}/").json()


def test_a_working_gpu_says_which_readings_decided(fleet, now_of):
    gpu = now_of(fleet.instance)["gpus"][0]
    assert (gpu["gpu"], gpu["state"]) == (fleet.gpus[0].pk, "working")
    assert gpu["because"] == {"utilization_percent": 97.0}
    assert gpu["reading"]["power_watts"] == 371.0
    assert 2 <= gpu["reading"]["age_seconds"] < 60


def test_what_was_not_read_is_null(fleet, now_of):
    reading = now_of(fleet.instance)["gpus"][0]["reading"]
    assert reading["temperature_celsius"] is None
    assert reading["sm_activity"] is None
    assert reading["nvlink_rx_bytes_per_second"] is None


def test_a_gpu_that_nobody_read_has_no_reading(fleet, now_of):
    gpu = now_of(fleet.instance)["gpus"][1]
    assert (gpu["state"], gpu["because"], gpu["reading"]) == ("unknown", {"reason": "no_report"}, None)


def test_a_silent_gpu_is_unknown_and_keeps_its_last_reading(fleet, now_of):
    old = timezone.now() - timedelta(minutes=10)
    GpuLatest.objects.update(sampled_at=old)
    gpu = now_of(fleet.instance)["gpus"][0]
    assert (gpu["state"], gpu["because"]) == ("unknown", {"reason": "silent"})
    assert 600 <= gpu["reading"]["age_seconds"] < 660


def test_a_gpu_that_is_paid_for_and_not_reported_has_no_id(fleet, now_of):
    fleet.instance.gpu_count = 3
    fleet.instance.save()
    gpu = now_of(fleet.instance)["gpus"][2]
    assert (gpu["gpu"], gpu["state"]) == (None, "unknown")


def test_a_stopped_machine_has_stopped_gpus(fleet, now_of):
    fleet.instance.state = InstanceState.STOPPED
    fleet.instance.save()
    machine = now_of(fleet.instance)
    assert machine["state"] == "stopped"
    assert {gpu["state"] for gpu in machine["gpus"]} == {"stopped"}


def test_host_and_agent_are_there_or_null(fleet, now_of):
    machine = now_of(fleet.instance)
    assert machine["host"]["cpu_percent"] == 34.0
    assert machine["host"]["cpu_iowait_percent"] is None
    assert machine["agent"]["nvml_state"] == "ok"
    assert (now_of(fleet.bare)["host"], now_of(fleet.bare)["agent"]) == (None, None)


def test_machines_are_filtered_as_instances_are(fleet, acme, as_token):
    rows = as_token(acme).get("/api/v1/latest/", {"search": "bare"}).json()["results"]
    assert [row["name"] for row in rows] == ["bare-02"]


def test_the_list_costs_the_same_queries_however_long(fleet, acme, as_token, make_instance, django_assert_num_queries):
    client = as_token(acme)
    client.get("/api/v1/latest/")
    with django_assert_num_queries(6):
        client.get("/api/v1/latest/")
    for number in range(10):
        make_instance(name=f"more-{number}", gpus=8)
    # Token, machines, GPUs with their latest readings, hosts, agents.
    with django_assert_num_queries(6):
        assert len(client.get("/api/v1/latest/").json()["results"]) == 12
