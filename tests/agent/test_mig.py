"""A GPU cut into instances: each is a GPU of its own, and nothing is counted twice or called 0 that was not read."""

from __future__ import annotations

import copy

import pytest

from tests.agent.nvml_session import by_uuid, one_sample, running
from tests.fakes.nvml.library import Device, FakeNvml

PARENT = "GPU-22222222-0000-0000-0000-000000000000"
FIRST = "MIG-00000000-0000-0000-0000-000000000000"


def test_instances_are_listed_with_parent_and_profile() -> None:
    inventory = {row["uuid"]: row for row in one_sample(FakeNvml("h100-mig"))["inventory"]}
    assert len(inventory) == 5
    assert inventory[FIRST]["mig_parent"] == PARENT
    assert inventory[FIRST]["mig_profile"] == "3g.40gb"
    assert inventory[FIRST]["memory_total_bytes"] == 40448 << 20
    assert "mig_parent" not in inventory[PARENT]


def test_the_parents_utilization_is_absent_not_zero() -> None:
    parent = by_uuid(one_sample(FakeNvml("h100-mig")))[PARENT]
    for field in (
        "utilization_percent",
        "memory_utilization_percent",
        "encoder_percent",
        "decoder_percent",
        "remapped_rows_failed",
    ):
        assert field not in parent
        assert parent["unavailable"][field] == "not_supported"
    assert parent["power_watts"] == pytest.approx(433.78)


def test_instances_have_memory_and_activity_of_their_own() -> None:
    with running(FakeNvml("h100-mig")) as session:
        session.sample()
        rows = by_uuid(session.sample())
    assert rows[FIRST]["sm_activity"] == 0.97
    assert rows[FIRST]["memory_used_bytes"] == 11091 << 20
    assert rows["MIG-00000001-0000-0000-0000-000000000001"]["sm_activity"] == 0.0


def test_processes_are_counted_on_the_instance_only() -> None:
    rows = by_uuid(one_sample(FakeNvml("h100-mig")))
    assert rows[FIRST]["process_count"] == 3
    assert "process_count" not in rows[PARENT]
    assert rows[PARENT]["unavailable"]["process_count"] == "counted_on_mig_instances"


def test_two_compute_instances_do_not_count_their_shared_memory_twice() -> None:
    library = FakeNvml("h100-mig")
    twin = copy.deepcopy(library.devices[0].migs[0].said)
    twin["uuid"] = "MIG-0000000a-0000-0000-0000-00000000000a"
    library.devices[0].migs.insert(1, Device(twin))
    rows = by_uuid(one_sample(library))
    assert rows[FIRST]["memory_used_bytes"] == 11091 << 20
    assert "memory_used_bytes" not in rows[twin["uuid"]]
    assert rows[twin["uuid"]]["unavailable"]["memory_used_bytes"] == "shared_with_sibling"


def test_each_device_is_reported_once() -> None:
    uuids = [gpu["uuid"] for gpu in one_sample(FakeNvml("h100-mig"))["gpus"]]
    assert len(uuids) == len(set(uuids)) == 5
