"""What a container uses and may use, from cgroup v2 and v1, through whatever the runtime mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.host.cgroups import container_cgroup, count_cpus
from agent.host.reader import HostReader, disk_totals

DISKS = {"8:0"}
V2_MOUNT = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate"
V1_MOUNTS = "\n".join(
    f"3{number} 23 0:3{number} /docker/abc /sys/fs/cgroup/{name} ro - cgroup cgroup rw,{name}"
    for number, name in enumerate(("cpu,cpuacct", "memory", "blkio", "cpuset"))
)


def put(machine: Path, **files: str) -> None:
    """Files by path; ``__`` stands for a slash and ``_d_`` for a dot."""
    for name, text in files.items():
        path = machine / name.replace("__", "/").replace("_d_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def v2(machine: Path) -> Path:
    put(machine, proc__self__mountinfo=V2_MOUNT, proc__1__cgroup="0::/\n")
    (machine / "sys/fs/cgroup").mkdir(parents=True)
    return machine


@pytest.fixture
def v1(machine: Path) -> Path:
    lines = "".join(
        f"{number}:{name}:/docker/abc\n"
        for number, name in ((4, "cpu,cpuacct"), (3, "memory"), (2, "blkio"), (1, "cpuset"))
    )
    put(machine, proc__self__mountinfo=V1_MOUNTS, proc__1__cgroup=lines)
    return machine


def test_v2_io_is_summed_over_whole_disks(v2: Path) -> None:
    put(
        v2,
        sys__fs__cgroup__io_d_stat="8:0 rbytes=1000 wbytes=2000 rios=10 wios=20 dbytes=0 dios=0\n"
        "253:0 rbytes=1000 wbytes=2000 rios=10 wios=20 dbytes=0 dios=0\n",
    )
    totals = container_cgroup(f"{v2}/").io_totals(DISKS)
    assert totals is not None
    assert totals.as_tuple() == (1000, 2000, 10, 20)


def test_v1_io_is_read_under_the_containers_own_path(v1: Path) -> None:
    put(
        v1,
        sys__fs__cgroup__blkio__blkio_d_throttle_d_io_service_bytes="8:0 Read 4096\n8:0 Write 8192\n8:0 Total 12288\nTotal 12288\n",
        sys__fs__cgroup__blkio__blkio_d_throttle_d_io_serviced="8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n",
    )
    totals = container_cgroup(f"{v1}/").io_totals(DISKS)
    assert totals is not None
    assert totals.as_tuple() == (4096, 8192, 1, 2)


@pytest.mark.parametrize("text", [None, "", "Total 0\n"])
def test_io_that_is_not_accounted_is_unknown_not_zero(v2: Path, v1: Path, text: str | None) -> None:
    if text is not None:
        put(v2, sys__fs__cgroup__io_d_stat="")
        for name in ("io_service_bytes", "io_serviced"):
            put(v1, **{f"sys__fs__cgroup__blkio__blkio_d_throttle_d_{name}": text})
    for machine in (v2, v1):
        assert container_cgroup(f"{machine}/").io_totals(DISKS) is None


def test_limits_of_v2(v2: Path) -> None:
    put(
        v2,
        sys__fs__cgroup__cpu_d_max="150000 100000\n",
        sys__fs__cgroup__cpu_d_stat="usage_usec 2500000\nuser_usec 2000000\n",
        sys__fs__cgroup__memory_d_max="1073741824\n",
        sys__fs__cgroup__memory_d_current="700000000\n",
        sys__fs__cgroup__memory_d_stat="anon 1\ninactive_file 200000000\n",
    )
    cgroup = container_cgroup(f"{v2}/")
    assert cgroup.cpu_limit_cores() == 1.5
    assert cgroup.cpu_used_seconds() == 2.5
    assert cgroup.memory_limit_bytes() == 1 << 30
    assert cgroup.memory_working_set_bytes() == 500000000


def test_limits_of_v1(v1: Path) -> None:
    put(
        v1,
        **{
            "sys__fs__cgroup__cpu,cpuacct__cpu_d_cfs_quota_us": "200000\n",
            "sys__fs__cgroup__cpu,cpuacct__cpu_d_cfs_period_us": "100000\n",
            "sys__fs__cgroup__cpu,cpuacct__cpuacct_d_usage": "3000000000\n",
            "sys__fs__cgroup__memory__memory_d_limit_in_bytes": "536870912\n",
            "sys__fs__cgroup__memory__memory_d_usage_in_bytes": "300\n",
            "sys__fs__cgroup__memory__memory_d_stat": "total_inactive_file 100\n",
        },
    )
    cgroup = container_cgroup(f"{v1}/")
    assert cgroup.cpu_limit_cores() == 2
    assert cgroup.cpu_used_seconds() == 3
    assert cgroup.memory_limit_bytes() == 512 << 20
    assert cgroup.memory_working_set_bytes() == 200


def test_no_limit_is_no_number(v2: Path, v1: Path) -> None:
    put(v2, sys__fs__cgroup__cpu_d_max="max 100000\n", sys__fs__cgroup__memory_d_max="max\n")
    cgroup = container_cgroup(f"{v2}/")
    assert cgroup.cpu_limit_cores() is None
    assert cgroup.memory_limit_bytes() is None


def test_a_path_outside_the_mount_means_the_mount(v2: Path) -> None:
    """With a cgroup namespace the first process may show a path like /../../init.scope."""
    put(v2, proc__1__cgroup="0::/../../init.scope\n", sys__fs__cgroup__memory_d_current="5\n")
    assert container_cgroup(f"{v2}/").memory_used_bytes() == 5


@pytest.mark.parametrize(("text", "count"), [("0-3,8", 5), ("0", 1), ("", 0), ("0-63", 64), ("2,4,6", 3)])
def test_cpu_lists(text: str, count: int) -> None:
    assert count_cpus(text) == count


def test_a_container_is_told_its_own_traffic_and_not_its_neighbours(v2: Path) -> None:
    disk = {
        "device": "sda",
        "read_bytes_per_second": 900.0,
        "write_bytes_per_second": 0.0,
        "read_iops": 9.0,
        "write_iops": 0.0,
        "busy_percent": 1.0,
    }
    own = {"read_bytes_per_second": 5.0, "write_bytes_per_second": 6.0, "read_iops": 1.0, "write_iops": 2.0}
    assert disk_totals({"disks": [disk], "cgroup": own}) == {
        "disk_read_bytes_per_second": 5.0,
        "disk_write_bytes_per_second": 6.0,
        "disk_read_iops": 1.0,
        "disk_write_iops": 2.0,
        "disk_scope": "cgroup",
    }
    by_processes = disk_totals(
        {"disks": [disk], "process_io": {"read_bytes_per_second": 3.0, "write_bytes_per_second": 4.0}}
    )
    assert by_processes == {
        "disk_read_bytes_per_second": 3.0,
        "disk_write_bytes_per_second": 4.0,
        "disk_scope": "process",
    }
    assert disk_totals({"disks": [disk]})["disk_scope"] == "host"
    assert disk_totals({}) == {}


def test_a_limited_container_measures_cpu_and_memory_against_its_limit(v2: Path) -> None:
    put(
        v2,
        _d_dockerenv="",
        proc__stat="cpu 10 0 10 100 0 0 0 0 0 0\n",
        proc__loadavg="1.5 1 1 1/1 1\n",
        proc__meminfo="MemTotal: 16000000 kB\nMemAvailable: 1000000 kB\n",
        proc__diskstats="",
        proc__net__dev="h\nh\n",
        sys__fs__cgroup__cpu_d_max="200000 100000\n",
        sys__fs__cgroup__cpu_d_stat="usage_usec 0\n",
        sys__fs__cgroup__memory_d_max="1000000000\n",
        sys__fs__cgroup__memory_d_current="250000000\n",
    )
    reader = HostReader(f"{v2}/")
    reader.read(100.0)
    put(v2, proc__stat="cpu 900 0 10 110 0 0 0 0 0 0\n", sys__fs__cgroup__cpu_d_stat="usage_usec 5000000\n")
    sample = reader.read(110.0)
    assert sample["cpu_percent"] == 25
    assert sample["cpu_limit_cores"] == 2
    assert (sample["memory_used_bytes"], sample["memory_total_bytes"]) == (250000000, 1000000000)
    assert sample["cgroup"] == {"memory_used_bytes": 250000000, "memory_limit_bytes": 1000000000}
