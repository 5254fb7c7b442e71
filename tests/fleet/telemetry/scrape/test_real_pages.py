"""Every exporter's page that was saved from a real machine goes through its dialect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.fleet.telemetry.scrape.pages import AT, Target

SAVED = Path(settings.BASE_DIR).parent / "shared" / "exporters"
GPU_PAGES = sorted(SAVED.glob("nvidia_gpu_exporter__*.metrics"))

pytestmark = pytest.mark.skipif(not GPU_PAGES, reason="the saved pages of real exporters are not here")


@pytest.mark.parametrize("path", GPU_PAGES, ids=lambda path: path.name[33:])
def test_a_gpu_page(path):
    target = Target("auto")
    text = path.read_text()
    scraped = target.read(text)
    (gpu,), (row,) = scraped.gpus, scraped.inventory
    assert row.name.startswith("NVIDIA")
    assert row.memory_total_bytes > 8 << 30
    assert gpu.power_watts > 0
    assert 0 <= gpu.memory_used_bytes <= gpu.memory_total_bytes
    assert target.dropped == {}
    shown = re.findall(r"^nvidia_smi_utilization_gpu_ratio\{.*\} (.+)$", text, re.MULTILINE)
    assert shown == ([] if "mig" in path.name else [str(gpu.utilization_percent / 100).removesuffix(".0")])
    assert (gpu.memory_temperature_celsius is not None) == ("h100" in path.name)


def test_a_host_page():
    text = (SAVED / "node_exporter__e2e-subset.metrics").read_text()
    target = Target("auto")
    assert target.read(text).host.load1 == 0.21
    host = target.read(text, at=AT + 10).host
    assert [disk.device for disk in host.disks] == ["mmcblk0", "nvme0n1", "sda", "sdb", "sdc", "vda"]
    assert host.disk_read_iops == 0
    assert host.pressure_io_percent == 0
    assert host.memory_used_bytes is None
    assert target.dropped == {}
