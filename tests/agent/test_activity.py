"""Activity, PCIe and NVLink: from the honest source, in the right direction, over the whole interval."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent.nvml_session import one_sample, running
from tests.fakes.nvml.library import FakeNvml

MIB = 1 << 20


def second_sample(profile: str) -> Any:
    with running(FakeNvml(profile)) as session:
        session.sample()
        return session.sample()["gpus"][0]


def test_activity_needs_two_samples_and_is_a_ratio() -> None:
    with running(FakeNvml("h100")) as session:
        assert "sm_activity" not in session.sample()["gpus"][0]
        gpu = session.sample()["gpus"][0]
    assert (gpu["sm_activity"], gpu["sm_occupancy"]) == (0.965, 0.6125)
    assert (gpu["tensor_activity"], gpu["dram_activity"]) == (0.4375, 0.525)


def test_received_is_not_sent() -> None:
    gpu = second_sample("h100")
    assert gpu["pcie_tx_bytes_per_second"] == 1200 * MIB
    assert gpu["pcie_rx_bytes_per_second"] == 3400 * MIB
    assert gpu["nvlink_rx_bytes_per_second"] == 81000 * MIB
    assert gpu["nvlink_tx_bytes_per_second"] == 79000 * MIB


def test_counters_become_rates_where_there_is_no_activity() -> None:
    ada, ampere = second_sample("l40s"), second_sample("a100")
    assert ada["pcie_tx_bytes_per_second"] == pytest.approx(4_000_000)
    assert ada["pcie_rx_bytes_per_second"] == pytest.approx(9_000_000)
    assert ampere["nvlink_tx_bytes_per_second"] == pytest.approx(2000 * 1024)
    assert ampere["nvlink_rx_bytes_per_second"] == pytest.approx(6000 * 1024)
    for gpu in (ada, ampere):
        assert "sm_activity" not in gpu
        assert gpu["unavailable"]["sm_activity"] == "not_supported"


def test_a_counter_that_went_back_drops_that_interval_only() -> None:
    library = FakeNvml("l40s")
    with running(library) as session:
        session.sample()
        library.devices[0].values["field.197"] = 0
        gpu = session.sample()["gpus"][0]
        assert "pcie_tx_bytes_per_second" not in gpu
        assert gpu["pcie_rx_bytes_per_second"] == pytest.approx(9_000_000)
        assert session.sample()["gpus"][0]["pcie_tx_bytes_per_second"] == pytest.approx(4_000_000)


def test_an_xid_begins_activity_anew() -> None:
    """After an XID the counters may stand still: the interval around it says nothing."""
    library = FakeNvml("h100")
    with running(library) as session:
        session.sample()
        assert "sm_activity" in session.sample()["gpus"][0]
        library.events.append((library.devices[0].said["uuid"], 31))
        assert "sm_activity" not in session.sample()["gpus"][0]
        assert "sm_activity" in session.sample()["gpus"][0]


def test_blank_activity_is_unavailable_not_zero() -> None:
    library = FakeNvml("h100")
    with running(library) as session:
        session.sample()
        del library.devices[0].values["gpm.10"]
        gpu = session.sample()["gpus"][0]
    assert "dram_activity" not in gpu
    assert gpu["unavailable"]["dram_activity"] == "not_supported"
    assert gpu["sm_activity"] == 0.965


def test_what_nvml_allocated_is_freed() -> None:
    library = FakeNvml("h100x8")
    with running(library) as session:
        for _ in range(5):
            session.sample()
        assert library.gpm_samples == 16
    assert library.gpm_samples == 0


def test_the_blocking_pcie_call_is_made_for_one_gpu_a_sample() -> None:
    library = FakeNvml("a100")
    copies = [FakeNvml("a100").devices[0] for _ in range(3)]
    for number, device in enumerate(copies):
        device.said["uuid"] = f"GPU-6666666{number}-0000-0000-0000-000000000001"
        device.values.update({"pcie_rx_kb": 3000, "pcie_tx_kb": 1000})
    library.devices[:] = copies
    with running(library) as session:
        session.sample()
        library.calls.clear()
        watched = [
            [gpu["uuid"] for gpu in session.sample()["gpus"] if "pcie_rx_bytes_per_second" in gpu] for _ in range(3)
        ]
        assert library.calls["nvmlDeviceGetPcieThroughput"] == 6
    assert sorted(watched) == [[device.said["uuid"]] for device in copies]


def test_nothing_blocks_where_pcie_is_counted() -> None:
    library = FakeNvml("h100x8")
    with running(library) as session:
        for _ in range(3):
            session.sample()
    assert "nvmlDeviceGetPcieThroughput" not in library.calls


def test_throttling_is_read_under_its_new_name_where_the_old_one_is_gone() -> None:
    library = FakeNvml("rtx4090")
    library.absent.add("nvmlDeviceGetCurrentClocksThrottleReasons")
    assert one_sample(library)["gpus"][0]["throttle_reasons"] == 4


def test_energy_is_in_joules_and_power_in_watts() -> None:
    gpu = one_sample(FakeNvml("h100"))["gpus"][0]
    assert gpu["power_watts"] == pytest.approx(631.95)
    assert gpu["energy_joules"] == pytest.approx(91234.567 + 5 * 631.95)
