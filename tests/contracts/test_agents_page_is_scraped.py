"""What our agent's own page says comes back as what the agent had read: names, units and labels on both sides."""

from __future__ import annotations

import pytest

from agent.exposition import DCGM, Page, add_gpus
from agent.exposition_host import add_host
from tests.fleet.telemetry.scrape.pages import AT, CARD, Target

READ = {
    "utilization_percent": 42.0, "memory_utilization_percent": 12.0, "memory_used_bytes": 5 << 30, "memory_reserved_bytes": 1 << 29,
    "memory_total_bytes": 80 << 30, "sm_activity": 0.5, "sm_occupancy": 0.25, "tensor_activity": 0.125, "dram_activity": 0.75, "power_watts": 612.5,
    "temperature_celsius": 61.0, "memory_temperature_celsius": 70.0, "sm_clock_mhz": 1755, "memory_clock_mhz": 2619,
    "pcie_tx_bytes_per_second": 1e9, "pcie_rx_bytes_per_second": 2e9, "energy_joules": 5000.0, "pcie_replays": 3, "encoder_percent": 7.0,
    "decoder_percent": 8.0, "ecc_corrected": 2, "ecc_uncorrected": 1, "remapped_rows_corrected": 4, "remapped_rows_uncorrected": 5, "remapped_rows_failed": True,
}  # fmt: skip
INVENTORY: list[dict[str, object]] = [
    {"uuid": CARD, "index": 3, "name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "0000:18:00.0"}
]


@pytest.mark.parametrize("label", ["Hostname", "hostname"])
def test_every_reading_comes_back(label):
    page = Page()
    add_gpus(page, [{"uuid": CARD, **READ}], INVENTORY, {label: "node-1"})
    scraped = Target("agent").read(page.text())
    (gpu,), (row,) = scraped.gpus, scraped.inventory
    assert {name: getattr(gpu, name) for name in READ} == pytest.approx(READ)
    assert (gpu.uuid, row.index, row.name, row.pci_bus_id) == (CARD, 3, INVENTORY[0]["name"], "0000:18:00.0")


def test_no_name_of_the_agents_is_left_out():
    assert {field for _kind, field, _factor, _help in DCGM.values()} <= set(READ)


def test_this_machines_own_host_page():
    page = Page()
    add_host(page)
    target = Target("agent")
    target.read(page.text())
    host = target.read(page.text(), at=AT + 10).host
    assert host.load1 is not None
    assert 0 < host.memory_used_bytes < host.memory_total_bytes
    assert target.dropped == {}
