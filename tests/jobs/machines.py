"""Machines for jobs: real OpenSSH servers on loopback, each with an own home. They end with their test, by their own pids."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from tests.programs import needs

CONFIG = """
Port {port}
ListenAddress {listen}
HostKey {host_key}
PidFile {folder}/pid
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel ERROR
SetEnv RACKRENT_BASE={folder}/jobs
AllowTcpForwarding yes
"""


@dataclass
class SshMachine:
    """`jobs`: where the script keeps jobs. `user`: whoever runs the tests."""

    folder: Path
    port: int
    host_key: str
    process: subprocess.Popen[bytes]

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs"

    @property
    def address(self) -> str:
        return f"{user()}@127.0.0.1:{self.port}"

    def end_connections(self) -> None:
        """As if the network were cut: every session of this server is killed, none of what it started."""
        for pid in children(self.process.pid):
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self.end_connections()
        self.process.terminate()
        self.process.wait(10)


def user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def children(pid: int) -> list[int]:
    """The processes of sshd below its listener: those that hold a connection."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            is_sshd = b"sshd" in (entry / "cmdline").read_bytes().split(b"\0")[0]
        except (OSError, IndexError):
            continue
        if int(fields[1]) == pid and is_sshd:
            found += [*children(int(entry.name)), int(entry.name)]
    return found


@contextmanager
def ssh_machine(folder: Path, *, welcome: str, more: str = "") -> Iterator[SshMachine]:
    """`welcome`: the public key that may sign in. `more`: lines of its configuration."""
    sshd = needs("sshd")
    folder.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        # Where sshd of root leaves its privileges.
        Path("/run/sshd").mkdir(exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    (folder / "host_key").write_bytes(key.export_private_key())
    (folder / "host_key").chmod(0o600)
    (folder / "authorized_keys").write_text(welcome + "\n")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = CONFIG.format(port=port, folder=folder, host_key=folder / "host_key", listen="127.0.0.1")
    (folder / "config").write_text(config + more)
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.PIPE)
    machine = SshMachine(folder, port, key.export_public_key().decode().strip(), process)
    try:
        wait_for_port("127.0.0.1", port, process)
        yield machine
    finally:
        if process.poll() is None:
            machine.stop()
        process.stderr and process.stderr.close()
        end_jobs(folder / "jobs")


def wait_for_port(host: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(process.stderr.read().decode() if process.stderr else "sshd ended")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((host, port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("sshd does not listen")


def end_jobs(jobs: Path) -> None:
    """Whatever a test left running of jobs below this folder."""
    for directory in jobs.glob("rr-job-*"):
        marker = f"RACKRENT_JOB={directory.name}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if marker in (entry / "environ").read_bytes():
                        os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    continue
    shutil.rmtree(jobs, ignore_errors=True)
