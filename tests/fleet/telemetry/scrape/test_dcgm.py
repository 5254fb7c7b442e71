"""dcgm-exporter's names, units and traps."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.telemetry.scrape.readings import UnusableError
from tests.fleet.telemetry.scrape.pages import AT, CARD, Target, dcgm, xid

MIB = 1 << 20
FULL: dict[str, Any] = {
    "DEV_GPU_UTIL": 97, "DEV_MEM_COPY_UTIL": 41, "DEV_FB_USED": 70_000, "DEV_FB_FREE": 11_000, "DEV_FB_RESERVED": 559, "DEV_POWER_USAGE": 612.4,
    "DEV_SM_CLOCK": 1755, "DEV_MEM_CLOCK": 2619, "DEV_GPU_TEMP": 61, "DEV_MEMORY_TEMP": 70, "DEV_TOTAL_ENERGY_CONSUMPTION": 5_000_000,
    "DEV_ROW_REMAP_FAILURE": 1, "PROF_SM_ACTIVE": 0.83, "PROF_PIPE_TENSOR_ACTIVE": 0.42, "PROF_PCIE_TX_BYTES": 1e9, "PROF_PCIE_RX_BYTES": 2e9,
}  # fmt: skip


@pytest.mark.parametrize("label", ["Hostname", "hostname"])
def test_units_become_ours_in_both_spellings(label):
    scraped = Target("dcgm").read(dcgm(host_label=label, **FULL))
    (gpu,), (row,) = scraped.gpus, scraped.inventory
    assert (gpu.uuid, gpu.utilization_percent, gpu.memory_utilization_percent) == (CARD, 97, 41)
    assert (gpu.memory_used_bytes, gpu.memory_reserved_bytes) == (70_000 * MIB, 559 * MIB)
    assert gpu.memory_total_bytes == row.memory_total_bytes == (70_000 + 11_000 + 559) * MIB
    assert (gpu.sm_activity, gpu.tensor_activity, gpu.energy_joules) == (0.83, 0.42, 5_000)
    assert (gpu.pcie_tx_bytes_per_second, gpu.pcie_rx_bytes_per_second) == (1e9, 2e9)
    assert (gpu.power_watts, gpu.sm_clock_mhz, gpu.temperature_celsius, gpu.memory_temperature_celsius) == (
        612.4,
        1755,
        61,
        70,
    )
    assert gpu.remapped_rows_failed is True
    assert (row.name, row.index, row.pci_bus_id) == ("NVIDIA H100 80GB HBM3", 0, "00000000:18:00.0")


def test_what_is_not_served_stays_absent():
    scraped = Target("dcgm").read(dcgm(DEV_GPU_UTIL=0, DEV_FB_USED=1, DEV_FB_FREE=2))
    (gpu,) = scraped.gpus
    assert gpu.utilization_percent == 0
    assert (gpu.sm_activity, gpu.power_watts, gpu.memory_total_bytes) == (None, None, None)
    assert scraped.host is None


@pytest.mark.parametrize(
    "blank", ["9223372036854775794", "9223372036854775792", "2147483632", "140737488355328", "NaN", "4294967295"]
)
def test_blanks_are_no_values(blank):
    (gpu,) = (
        Target("dcgm")
        .read(dcgm(DEV_GPU_UTIL=blank, DEV_MEMORY_TEMP=blank, DEV_ECC_SBE_VOL_TOTAL=blank, DEV_GPU_TEMP=40))
        .gpus
    )
    assert (gpu.utilization_percent, gpu.memory_temperature_celsius, gpu.ecc_corrected) == (None, None, None)
    assert gpu.temperature_celsius == 40


def test_values_outside_their_range_are_dropped_and_counted():
    target = Target("dcgm")
    (gpu,) = target.read(dcgm(DEV_GPU_UTIL=250, PROF_SM_ACTIVE=1.7, DEV_GPU_TEMP=40)).gpus
    assert (gpu.utilization_percent, gpu.sm_activity) == (None, None)
    assert target.dropped == {"utilization_percent": 1, "sm_activity": 1}


class TestTheLastXid:
    def test_its_first_sight_says_nothing_of_when_it_happened(self):
        assert Target("dcgm").read(xid(79)).events == []

    def test_a_change_to_another_number_is_an_event(self):
        target = Target("dcgm")
        target.read(xid(0))
        (event,) = target.read(xid(79), at=AT + 30).events
        assert (event.kind, event.code, event.gpu, event.at) == ("xid", 79, CARD, AT + 30)

    def test_it_stays_there_without_happening_again(self):
        target = Target("dcgm")
        target.read(xid(0))
        target.read(xid(79), at=AT + 30)
        assert target.read(xid(79), at=AT + 60).events == []

    def test_going_back_to_zero_is_none_and_the_same_one_after_it_is(self):
        target = Target("dcgm")
        target.read(xid(79))
        assert target.read(xid(0), at=AT + 30).events == []
        assert [event.code for event in target.read(xid(79), at=AT + 60).events] == [79]

    def test_a_series_that_appears_with_its_first_error_counts(self):
        target = Target("dcgm")
        target.read(dcgm(DEV_GPU_UTIL=1))
        assert [event.code for event in target.read(xid(48), at=AT + 30).events] == [48]


def agent_page(count: int) -> str:
    return (
        xid(31)
        + f'# TYPE rackrent_agent_xid_errors_total counter\nrackrent_agent_xid_errors_total{{UUID="{CARD}",xid="31"}} {count}\n'
    )


def test_our_agents_counter_tells_a_second_equal_xid():
    target = Target("agent")
    target.read(agent_page(1))
    assert target.read(agent_page(1), at=AT + 30).events == []
    assert [event.code for event in target.read(agent_page(2), at=AT + 60).events] == [31]


def test_pcie_declared_as_a_counter_becomes_a_rate():
    def page(total: float) -> str:
        return dcgm(PROF_PCIE_TX_BYTES=total, DEV_GPU_UTIL=3).replace(
            "# TYPE DCGM_FI_PROF_PCIE_TX_BYTES gauge", "# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter"
        )

    target = Target("dcgm")
    assert target.read(page(1e12)).gpus[0].pcie_tx_bytes_per_second is None
    assert target.read(page(1e12 + 3e9), at=AT + 30).gpus[0].pcie_tx_bytes_per_second == 1e8
    assert target.read(page(5), at=AT + 60).gpus[0].pcie_tx_bytes_per_second is None


def mig(part: str, **values: Any) -> str:
    return dcgm(**values).replace('",pci_bus_id', f'",GPU_I_PROFILE="3g.40gb",GPU_I_ID="{part}",pci_bus_id')


def test_a_cut_cards_figures_count_once_and_its_parts_are_their_own():
    shared: dict[str, Any] = {"DEV_POWER_USAGE": 300, "DEV_GPU_TEMP": 50, "DEV_GPU_UTIL": 0}
    page = mig("1", DEV_FB_USED=100, PROF_SM_ACTIVE=0.5, **shared) + mig(
        "2", DEV_FB_USED=200, PROF_SM_ACTIVE=0.1, **shared
    )
    scraped = Target("dcgm").read(page)
    gpus = {gpu.uuid: gpu for gpu in scraped.gpus}
    assert [gpu.power_watts for gpu in scraped.gpus if gpu.power_watts is not None] == [300]
    assert gpus[CARD].power_watts == 300
    assert gpus[CARD].utilization_percent is None
    assert (gpus[f"{CARD}/1"].memory_used_bytes, gpus[f"{CARD}/2"].memory_used_bytes) == (100 * MIB, 200 * MIB)
    assert gpus[f"{CARD}/1"].utilization_percent is None
    rows = {row.uuid: row for row in scraped.inventory}
    assert (rows[f"{CARD}/1"].mig_parent, rows[f"{CARD}/1"].mig_profile) == (CARD, "3g.40gb")
    assert rows[CARD].mig_parent is None


def test_a_page_without_any_gpu_is_a_failure_and_no_idle_machine():
    with pytest.raises(UnusableError) as caught:
        Target("dcgm").read('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 3\n')
    assert caught.value.code == "no_gpus"


def test_our_agents_host_counts_when_its_gpus_fail():
    page = "rackrent_agent_last_collect_success 0\nrackrent_agent_gpus 0\nnode_load1 2\n"
    scraped = Target("agent").read(page)
    assert scraped.host.load1 == 2
    assert scraped.problem.code == "no_gpus"


def test_our_agent_on_a_machine_without_a_driver_has_a_host_only():
    scraped = Target("agent").read("rackrent_agent_last_collect_success 1\nrackrent_agent_gpus 0\nnode_load1 2\n")
    assert (scraped.gpus, scraped.host.load1, scraped.problem) == (None, 2, None)


def test_absurd_labels_are_refused_whole():
    with pytest.raises(UnusableError) as caught:
        Target("dcgm").read(dcgm(uuid="x" * 200, DEV_GPU_UTIL=1))
    assert caught.value.code == "bad_labels"
