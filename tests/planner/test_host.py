"""What else the machine needs: sizes that follow from the run, and a reason for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalogue.gpus import GIB
from planner.host import HostLoad, Need, download_seconds, host_needs

TRAINING = HostLoad(
    gpus_per_node=8,
    nodes=1,
    weights=14 * GIB,
    checkpoint=98 * GIB,
    kept_checkpoints=2,
    checkpoint_interval_seconds=3600,
    dataset=10 * GIB,
    read_rate=1e6,
    network_per_step=0,
    step_seconds=2,
    offloaded=0,
)


def needs(load: HostLoad) -> dict[str, Need]:
    return {need.key: need for need in host_needs(load)}


def test_every_line_has_a_reason_and_a_recommendation_no_smaller_than_the_minimum() -> None:
    for need in host_needs(replace(TRAINING, nodes=2, network_per_step=28 * GIB)):
        assert need.why.key.startswith("host.")
        if not isinstance(need.minimum, str):
            assert not isinstance(need.recommended, str)
            assert need.recommended >= need.minimum > 0


def test_the_data_disk_holds_one_checkpoint_more_than_is_kept() -> None:
    least = needs(TRAINING)["data_disk"].minimum
    assert least == pytest.approx(1.1 * (14 + 10 + 3 * 98) * GIB, abs=GIB)


def test_what_is_offloaded_needs_memory_on_the_host() -> None:
    plain, offloading = needs(TRAINING)["memory"], needs(replace(TRAINING, offloaded=84 * GIB))["memory"]
    assert isinstance(plain.minimum, float)
    assert offloading.minimum == plain.minimum + 84 * GIB
    assert offloading.why.key == "host.memory.offload"


def test_a_big_checkpoint_asks_for_a_fast_disk() -> None:
    slow = needs(replace(TRAINING, checkpoint=10 * GIB))["disk_bandwidth"]
    fast = needs(replace(TRAINING, checkpoint=1000 * GIB))["disk_bandwidth"]
    assert fast.minimum == pytest.approx(1000 * GIB / 180)
    assert slow.minimum < fast.minimum  # type: ignore[operator]


def test_one_node_asks_for_no_network_between_nodes() -> None:
    assert "node_network" not in needs(TRAINING)
    linked = needs(replace(TRAINING, nodes=2, network_per_step=28 * GIB))["node_network"]
    assert linked.minimum == pytest.approx(8 * 28 * GIB)


def test_a_shared_host_will_do_for_one_gpu_that_nobody_waits_for() -> None:
    alone = replace(TRAINING, gpus_per_node=1)
    assert needs(alone)["tenancy"].minimum == "shared"
    assert needs(replace(alone, serves_people=True))["tenancy"].recommended == "exclusive"
    assert needs(TRAINING)["tenancy"].minimum == "exclusive"


def test_weights_take_their_time_over_a_slow_line() -> None:
    seconds = download_seconds(140e9)
    assert seconds[1e9] == pytest.approx(1244, rel=0.01)
    assert seconds[100e6] == pytest.approx(10 * seconds[1e9])
