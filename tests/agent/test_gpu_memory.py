"""Frame buffer: reserved apart from used, and said so where the driver cannot tell them apart."""

from __future__ import annotations

from pathlib import Path

from agent.nvml.calls import NO_PERMISSION
from tests.agent.nvml_session import by_uuid, one_sample
from tests.fakes.nvml.library import FakeNvml


def test_reserved_memory_is_no_use_of_anybody() -> None:
    gpu = one_sample(FakeNvml("h100"))["gpus"][0]
    assert gpu["memory_used_bytes"] == 20780679168
    assert gpu["memory_reserved_bytes"] == 502267904
    assert gpu["memory_total_bytes"] == 85520809984
    assert gpu["memory_includes_reserved"] is False


def test_an_old_driver_counts_reserved_memory_as_used_and_that_is_said() -> None:
    gpu = one_sample(FakeNvml("a100-old-driver"))["gpus"][0]
    assert gpu["memory_includes_reserved"] is True
    assert gpu["memory_used_bytes"] > 0
    assert "memory_reserved_bytes" not in gpu


def test_bandwidth_use_is_not_how_full_the_memory_is() -> None:
    gpu = one_sample(FakeNvml("h100"))["gpus"][0]
    assert gpu["memory_utilization_percent"] == 11
    assert round(100 * gpu["memory_used_bytes"] / gpu["memory_total_bytes"]) == 24


def test_unified_memory_comes_from_the_machine_and_is_called_so(machine: Path) -> None:
    (machine / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    gpu = one_sample(FakeNvml("gb10"), root=f"{machine}/")["gpus"][0]
    assert gpu["unified_memory"] is True
    assert (gpu["memory_used_bytes"], gpu["memory_total_bytes"]) == (600 * 1024, 1000 * 1024)
    assert "memory_used_bytes" not in gpu["unavailable"]
    assert gpu["utilization_percent"] == 35


def test_no_permission_for_the_memory_of_a_mig_parent_is_a_reason_not_a_crash() -> None:
    library = FakeNvml("h100-mig")
    parent = library.devices[0].said["uuid"]
    library.fail["nvmlDeviceGetMemoryInfo_v2", parent] = NO_PERMISSION
    rows = by_uuid(one_sample(library))
    assert rows[parent]["unavailable"]["memory_used_bytes"] == "no_permission"
    assert "memory_used_bytes" not in rows[parent]
    assert rows["MIG-00000000-0000-0000-0000-000000000000"]["memory_used_bytes"] == 11091 << 20
