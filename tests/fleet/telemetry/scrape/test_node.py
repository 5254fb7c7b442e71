"""node_exporter's counters as rates."""

from __future__ import annotations

import pytest

from tests.fleet.telemetry.scrape.pages import AT, Target

DISK_NAMES = (
    "reads_completed",
    "read_bytes",
    "read_time_seconds",
    "writes_completed",
    "written_bytes",
    "write_time_seconds",
    "io_time_seconds",
)


def disk(device: str, *values: float) -> str:
    return "".join(
        f'node_disk_{name}_total{{device="{device}"}} {value}\n' for name, value in zip(DISK_NAMES, values, strict=True)
    )


def cpu(idle: float, iowait: float, user: float) -> str:
    modes = {"idle": idle, "iowait": iowait, "user": user}
    return "# TYPE node_cpu_seconds_total counter\n" + "".join(
        f'node_cpu_seconds_total{{cpu="{core}",mode="{mode}"}} {value}\n'
        for core in "01"
        for mode, value in modes.items()
    )


def network(device: str, received: float, sent: float) -> str:
    return (
        f'node_network_receive_bytes_total{{device="{device}"}} {received}\n'
        f'node_network_transmit_bytes_total{{device="{device}"}} {sent}\n'
    )


def after(first: str, second: str, *, seconds: float = 10.0, longest_seconds: float = 300.0):
    target = Target("node")
    target.read(first)
    return target.read(second, at=AT + seconds, longest_seconds=longest_seconds).host


def test_the_first_scrape_has_no_rates():
    host = (
        Target("node")
        .read(cpu(100, 1, 5) + disk("sda", 1, 2, 3, 4, 5, 6, 7) + network("eth0", 1, 2) + "node_load1 0.5\n")
        .host
    )
    assert host.load1 == 0.5
    assert (host.cpu_percent, host.disks, host.network_rx_bytes_per_second) == (None, None, None)


def test_cpu_over_all_cores():
    host = after(cpu(100, 10, 50), cpu(106, 11, 53))
    assert (host.cpu_percent, host.cpu_iowait_percent) == (30, 10)


def test_disk_traffic_latency_and_how_busy():
    host = after(disk("sda", 100, 0, 1, 100, 0, 1, 5), disk("sda", 300, 1e6, 2, 100, 0, 1, 9))
    assert (host.disk_read_iops, host.disk_read_bytes_per_second, host.disk_write_iops) == (20, 1e5, 0)
    assert host.disk_read_latency_seconds == 0.005
    assert host.disk_write_latency_seconds is None
    assert (host.disk_busy_percent, host.disk_scope) == (40, "host")


def test_whole_disks_only():
    devices = ("sda", "sda1", "dm-0", "md0", "nvme0n1", "nvme0n1p2", "loop0", "sr0", "zram0", "mmcblk0p1")
    before = "".join(disk(name, 0, 0, 0, 0, 0, 0, 0) for name in devices)
    host = after(before, "".join(disk(name, 10, 0, 0, 0, 0, 0, 0) for name in devices))
    assert [row.device for row in host.disks] == ["sda", "nvme0n1"]
    assert host.disk_read_iops == 2


def test_a_counter_that_went_back_drops_its_interval_and_no_other():
    host = after(
        disk("sda", 100, 0, 0, 0, 0, 0, 0) + disk("sdb", 100, 0, 0, 0, 0, 0, 0),
        disk("sda", 7, 0, 0, 0, 0, 0, 0) + disk("sdb", 200, 0, 0, 0, 0, 0, 0),
    )
    assert [(row.device, row.read_iops) for row in host.disks] == [("sdb", 10)]


def test_after_another_boot_no_counter_goes_on():
    host = after("node_boot_time_seconds 1000000\n" + cpu(1, 1, 1), "node_boot_time_seconds 1000500\n" + cpu(90, 9, 9))
    assert host.cpu_percent is None


def test_a_boot_time_that_wavers_is_the_same_boot():
    host = after("node_boot_time_seconds 1000000\n" + cpu(0, 0, 0), "node_boot_time_seconds 1000002\n" + cpu(5, 0, 5))
    assert host.cpu_percent == 50


def test_a_rate_over_a_long_silence_is_not_now():
    assert after(cpu(0, 0, 0), cpu(5, 0, 5), seconds=400).cpu_percent is None


def test_network_without_counting_a_byte_twice():
    names = ("lo", "eth0", "docker0", "veth1", "bond0")
    host = after("".join(network(name, 0, 0) for name in names), "".join(network(name, 1000, 500) for name in names))
    assert (host.network_rx_bytes_per_second, host.network_tx_bytes_per_second) == (100, 50)
    assert [row.name for row in host.interfaces] == ["eth0", "docker0", "bond0"]


def test_no_sum_while_one_interface_has_no_rate():
    host = after(network("eth0", 0, 0), network("eth0", 10, 10) + network("eth1", 10, 10))
    assert host.network_rx_bytes_per_second is None


def test_memory_and_pressure():
    page = "node_memory_MemTotal_bytes 1000\nnode_memory_MemAvailable_bytes 400\nnode_pressure_io_waiting_seconds_total {}\n"
    host = after(page.format(1), page.format(3))
    assert (host.memory_used_bytes, host.memory_total_bytes, host.pressure_io_percent) == (600, 1000, 20)


def test_memory_is_unknown_without_what_is_available():
    assert (
        Target("node").read("node_memory_MemTotal_bytes 1000\nnode_memory_MemFree_bytes 1\n").host.memory_used_bytes
        is None
    )


def filesystem(mount: str, size: float, free: float, *, device: str = "/dev/sda1", kind: str = "ext4") -> str:
    labels = f'{{device="{device}",fstype="{kind}",mountpoint="{mount}"}}'
    return f"node_filesystem_size_bytes{labels} {size}\nnode_filesystem_free_bytes{labels} {free}\n"


def test_a_device_counts_once_however_often_it_is_mounted():
    page = (
        filesystem("/", 100, 40)
        + filesystem("/var/lib/docker", 100, 40)
        + filesystem("/run", 9, 9, device="tmpfs", kind="tmpfs")
    )
    host = Target("node").read(page).host
    assert [(row.mount, row.used_bytes) for row in host.filesystems] == [("/", 60)]
    assert (host.filesystem_used_bytes, host.filesystem_total_bytes) == (60, 100)


@pytest.mark.parametrize("value", ["-5", "1e300", "+Inf"])
def test_what_cannot_be_true_is_dropped(value):
    target = Target("node")
    assert target.read(f"node_load1 {value}\nnode_memory_MemTotal_bytes 5\n").host.load1 is None
    assert target.dropped == {"load1": 1}
