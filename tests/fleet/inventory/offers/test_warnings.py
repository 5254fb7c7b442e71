"""What people overlook: each threshold from both sides, and silence said as silence."""

from __future__ import annotations

import pytest

from fleet.inventory.offers.need import Facts, Need, Purpose
from fleet.inventory.offers.warnings import warnings_of
from fleet.inventory.offers.words import TOO_LITTLE, UNTOLD, oversight_text

GOOD = Facts(
    gpu_model="H100 SXM",
    gpu_count=8,
    vcpus=8,
    ram_mib=64 * 1024,
    disk_gb=100,
    disk_kind="nvme",
    internet_down_mbps=50.0,
    internet_up_mbps=50.0,
    node_network_gbps=10.0,
    tenancy="dedicated_host",
)
ANY = Need()
DATA = Need(dataset_gb=200)


def codes(facts, need=ANY):
    return [(found.code, found.known) for found in warnings_of(facts, need)]


def test_an_offer_that_has_enough_of_everything_is_warned_of_nothing():
    assert codes(GOOD, Need(nodes=2, purpose=Purpose.BENCHMARK)) == []


@pytest.mark.parametrize(
    ("short", "need", "code"),
    [
        ({"vcpus": 7}, ANY, "vcpus"),
        ({"ram_mib": 63 * 1024}, ANY, "ram"),
        ({"ram_mib": 127 * 1024, "disk_gb": 800}, DATA, "ram_large_data"),
        ({"disk_gb": 99}, ANY, "system_disk"),
        ({"disk_kind": "hdd"}, ANY, "disk_kind"),
        ({"disk_gb": 599, "ram_mib": 2**20}, DATA, "data_disk"),
        ({"disk_gb": 799, "ram_mib": 2**20}, DATA, "data_disk_tight"),
        ({"node_network_gbps": 9.9}, Need(nodes=2), "node_network"),
        ({"internet_up_mbps": 49.0}, ANY, "internet"),
        ({"tenancy": "dedicated_gpu"}, Need(purpose=Purpose.BENCHMARK), "tenancy"),
        ({"tenancy": "community_host"}, Need(purpose=Purpose.PRODUCTION), "tenancy"),
    ],
)
def test_too_little_is_warned_of(short, need, code):
    assert codes(GOOD._replace(**short), need) == [(code, True)]


@pytest.mark.parametrize(
    ("silent", "need", "code"),
    [
        ({"vcpus": None}, ANY, "vcpus"),
        ({"ram_mib": None}, ANY, "ram"),
        ({"disk_gb": None}, ANY, "system_disk"),
        ({"disk_kind": ""}, ANY, "system_disk"),
        ({"node_network_gbps": None}, Need(nodes=2), "node_network"),
        ({"internet_up_mbps": None}, ANY, "internet"),
        ({"tenancy": "unknown"}, Need(purpose=Purpose.BENCHMARK), "tenancy"),
    ],
)
def test_silence_is_not_taken_for_a_yes(silent, need, code):
    assert codes(GOOD._replace(**silent), need) == [(code, False)]


def test_a_dataset_without_a_known_disk_is_said():
    assert ("data_disk", False) in codes(GOOD._replace(disk_gb=None, ram_mib=2**20), DATA)


def test_four_times_the_dataset_is_enough():
    assert codes(GOOD._replace(disk_gb=800, ram_mib=2**20), DATA) == []


def test_what_was_not_asked_is_not_warned_of():
    """One machine has no network to others, and trying things out may be shared."""
    assert (
        codes(GOOD._replace(node_network_gbps=None, tenancy="community_host"), Need(purpose=Purpose.EXPERIMENT)) == []
    )


def test_what_is_too_little_stands_before_what_is_not_told():
    assert codes(GOOD._replace(vcpus=None, ram_mib=1024)) == [("ram", True), ("vcpus", False)]


def test_every_warning_has_words_with_its_figures():
    bare = Facts(vcpus=4, ram_mib=2048, disk_gb=50, disk_kind="ssd", internet_up_mbps=1.5, tenancy="community_host")
    need = Need(nodes=2, dataset_gb=40, purpose=Purpose.PRODUCTION)
    texts = [oversight_text(found) for found in warnings_of(bare, need)]
    assert "4 vCPUs: under 8 the GPU waits for its data" in texts
    assert "50 GB of disk for 40 GB of data: unpacked and with checkpoints it takes 120" in texts
    assert "the host is shared: others change how fast production answers" in texts
    assert not [text for text in texts if "%(" in text]
    assert set(UNTOLD) <= set(TOO_LITTLE)
