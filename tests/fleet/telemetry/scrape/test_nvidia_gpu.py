"""nvidia_gpu_exporter: base units, and facts that lie in a series of their own."""

from __future__ import annotations

import pytest

from fleet.telemetry.scrape.readings import UnusableError
from tests.fleet.telemetry.scrape.pages import AT, CARD, Target

BARE = CARD.removeprefix("GPU-")
INFO = f'nvidia_smi_gpu_info{{index="3",name="NVIDIA L40S",pci_bus_id="00000000:3B:00.0",uuid="{BARE}"}} 1\n'


def value(name: str, number: object) -> str:
    return f'nvidia_smi_{name}{{uuid="{BARE}"}} {number}\n'


def test_units_and_the_join():
    page = (
        INFO
        + value("utilization_gpu_ratio", 0.97)
        + value("clocks_current_sm_clock_hz", 1.98e9)
        + value("memory_used_bytes", 5e9)
    )
    scraped = Target("nvidia_gpu").read(page)
    (gpu,), (row,) = scraped.gpus, scraped.inventory
    assert (gpu.uuid, gpu.utilization_percent, gpu.sm_clock_mhz, gpu.memory_used_bytes) == (
        CARD,
        97,
        1980,
        5_000_000_000,
    )
    assert (gpu.power_watts, gpu.temperature_celsius) == (None, None)
    assert (row.uuid, row.index, row.name) == (CARD, 3, "NVIDIA L40S")


def test_zero_gpus_is_a_failed_collection():
    with pytest.raises(UnusableError) as caught:
        Target("nvidia_gpu").read("nvidia_smi_last_collect_success 1\n")
    assert caught.value.code == "no_gpus"


def test_what_a_failed_collection_still_shows_is_not_taken():
    with pytest.raises(UnusableError) as caught:
        Target("nvidia_gpu").read(INFO + value("utilization_gpu_ratio", 0.5) + "nvidia_smi_last_collect_success 0\n")
    assert caught.value.code == "collection_failed"


def test_a_counted_xid_is_an_event_when_it_grows():
    def page(count: int) -> str:
        return INFO + f'nvidia_smi_xid_errors_total{{uuid="{BARE}",xid="79"}} {count}\n'

    target = Target("nvidia_gpu")
    assert target.read(INFO).events == []
    assert [(event.gpu, event.code) for event in target.read(page(1), at=AT + 30).events] == [(CARD, 79)]
    assert target.read(page(1), at=AT + 60).events == []
    assert [event.code for event in target.read(page(2), at=AT + 90).events] == [79]


def test_beside_dcgm_the_same_card_is_read_once():
    page = INFO + value("utilization_gpu_ratio", 0.5) + f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{CARD}"}} 60\n'
    scraped = Target("auto").read(page)
    assert [(gpu.uuid, gpu.utilization_percent) for gpu in scraped.gpus] == [(CARD, 60)]
