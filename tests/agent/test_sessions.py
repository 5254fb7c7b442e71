"""Who is there: SSH sessions and Jupyter kernels by their processes, file systems by their mounts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.host import filesystems
from agent.host.process_io import ProcessIoReader
from agent.host.sessions import ProcessScan


def process(machine: Path, pid: int, *words: str) -> None:
    directory = machine / f"proc/{pid}"
    directory.mkdir(exist_ok=True)
    (directory / "stat").write_text("")
    (directory / "cmdline").write_text("\0".join(words) + "\0")


@pytest.fixture
def busy(machine: Path) -> Path:
    process(machine, 1, "/sbin/init")
    process(machine, 10, "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups")
    process(machine, 11, "sshd: ada [priv]")
    process(machine, 12, "sshd: ada@pts/0")
    process(machine, 13, "sshd-session: grace@notty")
    process(machine, 20, "/opt/conda/bin/python", "-m", "ipykernel_launcher", "-f", "kernel.json")
    process(machine, 21, "vim", "sshd: notes@pts/9")
    return machine


def test_signed_in_people_are_counted_once_each(busy: Path) -> None:
    assert ProcessScan(f"{busy}/").read() == {"ssh_sessions": 2, "jupyter_kernels": 1}


def test_a_session_that_ends_is_gone(busy: Path) -> None:
    scan = ProcessScan(f"{busy}/")
    scan.read()
    (busy / "proc/12/cmdline").write_text("sshd: ada [priv]\0")
    for path in (busy / "proc/20").iterdir():
        path.unlink()
    (busy / "proc/20").rmdir()
    assert scan.read() == {"ssh_sessions": 1, "jupyter_kernels": 0}


def test_a_process_that_ends_while_it_is_read_is_skipped(busy: Path) -> None:
    (busy / "proc/13/cmdline").unlink()
    assert ProcessScan(f"{busy}/").read()["ssh_sessions"] == 1


def test_hidden_processes_are_unknown_not_none(machine: Path) -> None:
    process(machine, 500, "python", "mine.py")
    assert ProcessScan(f"{machine}/").read() == {}


def test_a_disk_that_is_mounted_many_times_is_one_file_system(machine: Path) -> None:
    (machine / "data").mkdir()
    (machine / "proc/self").mkdir()
    (machine / "proc/self/mounts").write_text(
        "/dev/sda1 / ext4 rw 0 0\n/dev/sda1 /data ext4 rw 0 0\noverlay /data overlay rw 0 0\nproc /proc proc rw 0 0\n"
    )
    rows = filesystems.rows(f"{machine}/", filesystems.LOCAL)
    assert [row["mount"] for row in rows] == ["/"]
    assert 0 < rows[0]["used_bytes"] <= rows[0]["total_bytes"]  # type: ignore[operator]


def test_network_file_systems_are_asked_apart(machine: Path) -> None:
    (machine / "proc/self").mkdir()
    (machine / "proc/self/mounts").write_text("nas:/x /data nfs4 rw 0 0\nmfs /work\\040space fuse.mfs rw 0 0\n")
    assert filesystems.mounts(f"{machine}/", filesystems.LOCAL) == []
    assert filesystems.mounts(f"{machine}/", filesystems.NETWORK) == ["/data", "/work space"]


def io(machine: Path, pid: int, read: int, written: int) -> None:
    process(machine, pid, "worker")
    (machine / f"proc/{pid}/io").write_text(
        f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n"
    )


def test_processes_that_ended_are_forgotten_also_where_not_all_may_be_read(machine: Path) -> None:
    reader = ProcessIoReader(f"{machine}/")
    io(machine, 99, 0, 0)
    (machine / "proc/99/io").write_text("not for you\n")
    for pid in range(100, 140):
        io(machine, pid, 0, 0)
        with pytest.raises((KeyError, ValueError)):
            reader.read(float(pid))
        shutil.rmtree(machine / f"proc/{pid}")
    assert len(reader._history._last) <= 1


def test_process_io_sums_those_that_lived_through_the_interval(machine: Path) -> None:
    reader = ProcessIoReader(f"{machine}/")
    io(machine, 5, 1000, 0)
    io(machine, 6, 0, 0)
    assert reader.read(100.0) == {}
    io(machine, 5, 3000, 500)
    io(machine, 6, 100, 0)
    io(machine, 7, 99999999, 0)
    assert reader.read(110.0) == {"process_io": {"read_bytes_per_second": 210.0, "write_bytes_per_second": 50.0}}
