"""Disk figures: whole physical disks, in bytes of 512-byte sectors, and no interval over a reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.host.disks import DiskReader, physical_disks
from tests.agent.shared_captures import capture

LINE = "{number} {name} {reads} 0 {read_sectors} {read_ms} {writes} 0 {written_sectors} {write_ms} 0 {busy_ms} 0 0 0 0 0 0 0"


def diskstats(machine: Path, **disks: tuple[int, int, int, int, int, int, int]) -> None:
    fields = ("reads", "read_sectors", "read_ms", "writes", "written_sectors", "write_ms", "busy_ms")
    lines = [
        LINE.format(number=f"8 {place}", name=name.replace("_", "-"), **dict(zip(fields, values, strict=True)))
        for place, (name, values) in enumerate(disks.items())
    ]
    (machine / "proc/diskstats").write_text("\n".join(lines) + "\n")


def second_read(reader: DiskReader, machine: Path, **disks: Any) -> dict[str, Any]:
    diskstats(machine, **disks)
    return {str(row["device"]): row for row in reader.read(110.0)}


def test_rates_are_per_second_and_sectors_are_512_bytes(machine: Path) -> None:
    reader = DiskReader(f"{machine}/")
    diskstats(machine, sda=(0, 0, 0, 0, 0, 0, 0))
    assert reader.read(100.0) == []
    row = second_read(reader, machine, sda=(100, 2000, 50, 30, 600, 60, 4000))["sda"]
    assert row["read_iops"] == 10
    assert row["read_bytes_per_second"] == 2000 * 512 / 10
    assert row["read_latency_seconds"] == pytest.approx(0.0005)
    assert row["write_iops"] == 3
    assert row["write_bytes_per_second"] == 600 * 512 / 10
    assert row["write_latency_seconds"] == pytest.approx(0.002)
    assert row["busy_percent"] == 40


def test_a_counter_that_went_back_drops_that_interval(machine: Path) -> None:
    reader = DiskReader(f"{machine}/")
    diskstats(machine, sda=(1000, 2000, 50, 30, 600, 60, 4000), sdb=(0, 0, 0, 0, 0, 0, 0))
    reader.read(100.0)
    rows = second_read(reader, machine, sda=(5, 10, 1, 0, 0, 0, 10), sdb=(10, 80, 5, 0, 0, 0, 10))
    assert set(rows) == {"sdb"}
    diskstats(machine, sda=(15, 30, 2, 0, 0, 0, 20))
    assert reader.read(120.0)[0]["read_iops"] == 1


def test_a_disk_that_returns_begins_anew(machine: Path) -> None:
    reader = DiskReader(f"{machine}/")
    diskstats(machine, sda=(10, 0, 0, 0, 0, 0, 0))
    reader.read(100.0)
    diskstats(machine)
    reader.read(105.0)
    assert second_read(reader, machine, sda=(90, 0, 0, 0, 0, 0, 0)) == {}


def test_without_requests_there_is_no_latency(machine: Path) -> None:
    reader = DiskReader(f"{machine}/")
    diskstats(machine, sda=(10, 0, 5, 0, 0, 0, 0))
    reader.read(100.0)
    row = second_read(reader, machine, sda=(10, 0, 5, 0, 0, 0, 0))["sda"]
    assert row["read_iops"] == 0
    assert "read_latency_seconds" not in row


def test_partitions_loops_ram_mapped_and_raid_devices_are_not_summed(machine: Path) -> None:
    """From a real machine: sda1-4, dm-0..5, loop, ram, fd0, sr0 and partitions of NVMe and MMC disks stand beside the disks."""
    (machine / "proc/diskstats").write_text(capture("proc_diskstats.txt"))
    names = [disk.device for disk in physical_disks(f"{machine}/")]
    assert names == ["sda", "mmcblk0", "vda", "nvme0n1", "sdb", "sdc"]


def test_lines_of_old_and_new_kernels_are_read_alike(machine: Path) -> None:
    (machine / "proc/diskstats").write_text(capture("proc_diskstats.txt"))
    columns = {disk.device: len(disk.columns) for disk in physical_disks(f"{machine}/")}
    assert (columns["sda"], columns["sdb"], columns["sdc"]) == (11, 15, 17)


def test_what_sysfs_calls_a_disk_is_one(machine: Path) -> None:
    """Names are a guess; where /sys is there it decides."""
    (machine / "sys/block/sda").mkdir(parents=True)
    diskstats(machine, sda=(0,) * 7, sda1=(0,) * 7, xvda7=(0,) * 7)
    assert [disk.device for disk in physical_disks(f"{machine}/")] == ["sda"]


def test_hidden_paths_of_nvme_multipath_are_no_second_disk(machine: Path) -> None:
    diskstats(machine, nvme0n1=(0,) * 7, nvme0c0n1=(0,) * 7, zram0=(0,) * 7, md0=(0,) * 7, dm_0=(0,) * 7)
    assert [disk.device for disk in physical_disks(f"{machine}/")] == ["nvme0n1"]
