"""What agents measured, for tests to change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fleet.quality.acceptance.figures import Promised

MIB, GB = 1 << 20, 10**9
PROMISED = Promised(gpu_model="L40S", gpu_count=2, gpu_memory_mib=46068, vcpus=40, ram_mib=320 * 1024, disk_gb=500)
CARD = {
    "name": "NVIDIA L40S",
    "memory_total_bytes": 46068 * MIB,
    "pcie_generation": 4,
    "pcie_generation_max": 4,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "host_to_device_bytes_per_second": 25.0e9,
    "matrix_flops_per_second": 0.21e15,
    "matrix_type": "bfloat16",
}
MEASURED: dict[str, Any] = {
    "gpu": {
        "driver": "570.86.15",
        "count": 2,
        "expected": 2,
        "under_load": True,
        "gpus": [{**CARD, "uuid": f"GPU-{number}", "index": number} for number in range(2)],
    },
    "cpu": {"count": 40, "single_rate": 600_000, "all_rate": 14_400_000, "effective_cores": 24.0, "load_before": 0.2},
    "memory": {"total_bytes": 315 * (1 << 30)},
    "disk": {
        "place": "/workspace",
        "size_bytes": 490 * GB,
        "by": "fio",
        "direct": True,
        "read_bytes_per_second": 3.0e9,
        "write_bytes_per_second": 1.9e9,
        "read_iops": 400_000,
        "write_iops": 180_000,
    },
    "network": {"download_bytes_per_second": 2.9e8, "upload_bytes_per_second": 1.7e8},
}


def measured(**parts: dict[str, Any] | None) -> dict[str, Any]:
    """Parts are merged into the usual ones; None leaves one out."""
    found = deepcopy(MEASURED)
    for part, changes in parts.items():
        if changes is None:
            del found[part]
        else:
            found[part].update(changes)
    return found


def with_cards(*changes: dict[str, Any]) -> dict[str, Any]:
    """Cards that differ from the usual ones; a key with the value None is left out."""
    found = measured()
    cards = [{key: value for key, value in {**CARD, **change}.items() if value is not None} for change in changes]
    found["gpu"].update(gpus=cards, count=len(cards), expected=len(cards))
    return found
