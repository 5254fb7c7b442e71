"""CPU, memory, pressure, load and network of the machine."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent.host.cpu import CpuReader
from agent.host.memory import MemoryReader, PressureReader
from agent.host.network import NetworkReader, carriers
from agent.host.reader import HostReader
from tests.agent.shared_captures import capture

NET_HEADER = "Inter-|   Receive   |  Transmit\n face |bytes packets|bytes packets\n"


def net_line(name: str, received: int, sent: int) -> str:
    return f"{name:>6}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"


def test_cpu_is_what_was_not_idle_since_the_last_read(machine: Path) -> None:
    (machine / "proc/loadavg").write_text("2.50 1.00 0.50 1/100 1234\n")
    (machine / "proc/stat").write_text("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
    reader = CpuReader(f"{machine}/", None)
    assert reader.read(100.0) == {"load1": 2.5}
    (machine / "proc/stat").write_text("cpu  160 0 120 900 20 0 0 0 0 0\n")
    assert reader.read(105.0) == {"load1": 2.5, "cpu_percent": 40, "cpu_iowait_percent": 10}


def test_guest_time_is_not_counted_beside_user_time(machine: Path) -> None:
    (machine / "proc/loadavg").write_text("0 0 0 1/1 1\n")
    (machine / "proc/stat").write_text("cpu 0 0 0 0 0 0 0 0 0 0\n")
    reader = CpuReader(f"{machine}/", None)
    reader.read(100.0)
    (machine / "proc/stat").write_text("cpu 50 0 0 50 0 0 0 0 50 0\n")
    assert reader.read(105.0)["cpu_percent"] == 50


def test_memory_in_use_is_what_is_not_available(machine: Path) -> None:
    (machine / "proc/meminfo").write_text(
        "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 700 kB\nHugePages_Total: 3\n"
    )
    assert MemoryReader(f"{machine}/", None).read(0.0) == {
        "memory_total_bytes": 1000 * 1024,
        "memory_used_bytes": 300 * 1024,
    }


def test_pressure_is_the_share_of_the_interval_in_which_some_task_waited(machine: Path) -> None:
    (machine / "proc/pressure").mkdir()
    file = machine / "proc/pressure/io"
    file.write_text(capture("proc_pressure_io.txt"))
    reader = PressureReader(f"{machine}/")
    assert reader.read(100.0) == {}
    file.write_text("some avg10=0.18 avg60=0.34 avg300=0.10 total=160886802\nfull avg10=0 avg60=0 avg300=0 total=9\n")
    assert reader.read(105.0) == {"pressure_io_percent": pytest.approx(20.0)}


def test_traffic_is_summed_over_hardware_interfaces_only(machine: Path) -> None:
    """A container's packet passes veth, docker0 and eth0: counted once."""
    (machine / "proc/net").mkdir()
    (machine / "sys/class/net/eth0/device").mkdir(parents=True)
    names = ("lo", "eth0", "docker0", "veth12ab")
    (machine / "proc/net/dev").write_text(NET_HEADER + "".join(net_line(name, 0, 0) for name in names))
    reader = NetworkReader(f"{machine}/")
    reader.read(100.0)
    (machine / "proc/net/dev").write_text(NET_HEADER + "".join(net_line(name, 1000, 500) for name in names))
    sample = reader.read(110.0)
    assert sample["network_rx_bytes_per_second"] == 100
    assert sample["network_tx_bytes_per_second"] == 50
    assert [row["name"] for row in sample["interfaces"]] == ["eth0", "docker0"]  # type: ignore[attr-defined]


def test_a_containers_only_interface_carries_its_traffic(machine: Path) -> None:
    assert carriers(f"{machine}/", ["eth0", "docker0"]) == ["eth0"]


def test_an_interface_that_went_back_makes_the_total_unknown_not_smaller(machine: Path) -> None:
    (machine / "proc/net").mkdir()
    (machine / "proc/net/dev").write_text(NET_HEADER + net_line("eth0", 1000, 1000) + net_line("eth1", 1000, 1000))
    reader = NetworkReader(f"{machine}/")
    reader.read(100.0)
    (machine / "proc/net/dev").write_text(NET_HEADER + net_line("eth0", 10, 10) + net_line("eth1", 2000, 2000))
    sample = reader.read(110.0)
    assert "network_rx_bytes_per_second" not in sample
    assert [row["name"] for row in sample["interfaces"]] == ["eth1"]  # type: ignore[attr-defined]


def test_a_machine_without_kernel_files_has_an_empty_sample_and_says_so_once(
    machine: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Some container runtimes emulate /proc and leave out most of it: unsupported, not zero."""
    reader = HostReader(f"{machine}/")
    with caplog.at_level(logging.WARNING):
        assert reader.read(100.0) == {}
        assert reader.read(105.0) == {}
    assert len([record for record in caplog.records if "disks cannot be read" in record.getMessage()]) == 1


def test_one_unreadable_file_costs_its_own_values_only(machine: Path) -> None:
    (machine / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 700 kB\n")
    (machine / "proc/stat").write_text("nonsense\n")
    assert HostReader(f"{machine}/").read(100.0)["memory_total_bytes"] == 1000 * 1024
