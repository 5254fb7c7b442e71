"""Machines of one job as machines: each in a network, process and mount namespace of its own, with a real OpenSSH server. Root only.

Two bridges lead to them: one that we reach (eth0 of each), and a private one between them (eth1). A machine can be switched off as by its power
button, begins anew with another boot id, and its cable can be cut. Everything ends with its test, by its own pid and name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import asyncssh
import pytest
import pytest_socket

from tests.jobs.machines import CONFIG, SshMachine, children, end_jobs, wait_for_port
from tests.programs import needs

SSH_PORT = 22
BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A process namespace of its own: whoever kills its first process has switched the machine off.
BOOT = f"mount --bind $1/boot_id {BOOT_ID} && exec $0 -D -e -f $1/config"


def needs_namespaces() -> None:
    needs("ip")
    if os.getuid() != 0:
        pytest.skip("only root may make network namespaces")
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"this kernel or container makes no namespaces: {tried.stderr.decode().strip()}")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class NetMachine(SshMachine):
    """`public`, `private`: its addresses, "" = it has none there."""

    def __init__(self, folder: Path, *, name: str, public: str, private: str, welcome: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        key = asyncssh.generate_private_key("ssh-ed25519")
        (folder / "host_key").write_bytes(key.export_private_key())
        (folder / "host_key").chmod(0o600)
        (folder / "authorized_keys").write_text(welcome + "\n")
        self.folder, self.port, self.name, self.public, self.private = folder, SSH_PORT, name, public, private
        self.host_key = key.export_public_key().decode().strip()
        config = CONFIG.format(port=self.port, folder=folder, host_key=folder / "host_key", listen="0.0.0.0")
        (folder / "config").write_text(config)

    @property
    def address(self) -> str:
        return f"root@{self.public}"

    @property
    def listener(self) -> int:
        """Of sshd: the first process of the machine."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def start(self) -> None:
        (self.folder / "boot_id").write_text(f"{uuid4()}\n")
        own = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", BOOT]
        words = ["ip", "netns", "exec", self.name, *own, needs("sshd"), str(self.folder)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE)
        wait_for_port(self.public, self.port, self.process)

    def end_connections(self) -> None:
        for pid in children(self.listener):
            os.kill(pid, signal.SIGKILL)

    def power_off(self) -> None:
        """No process of it gets to say a word."""
        os.kill(self.listener, signal.SIGKILL)
        self.process.wait(10)
        self.process.stderr and self.process.stderr.close()

    def reboot(self) -> None:
        self.power_off()
        self.start()

    def cut(self, *, card: str = "eth0") -> None:
        ip("-n", self.name, "link", "set", card, "down")

    def mend(self, *, card: str = "eth0") -> None:
        ip("-n", self.name, "link", "set", card, "up")

    def slow_down(self, rate: str, *, card: str = "eth1") -> None:
        shape = ["tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
        subprocess.run(
            ["ip", "netns", "exec", self.name, "tc", "qdisc", "add", "dev", card, "root", *shape], check=True
        )


class Network:
    """Addresses and names are this process's: other runs of the tests on this machine have others."""

    def __init__(self, folder: Path, welcome: str) -> None:
        self.folder, self.welcome = folder, welcome
        self.mark = f"rr{os.getpid() % 100_000:05d}"
        high, low = 64 + os.getpid() // 256 % 64, os.getpid() % 256
        # The first range is nobody's private network: carriers use it.
        self.public, self.private = f"100.{high}.{low}", f"10.{high}.{low}"
        self.machines: list[NetMachine] = []

    def make(self) -> None:
        for kind in ("p", "q"):
            ip("link", "add", f"{self.mark}{kind}", "type", "bridge")
            ip("link", "set", f"{self.mark}{kind}", "up")
        ip("addr", "add", f"{self.public}.1/24", "dev", f"{self.mark}p")

    def add(self, *, private: bool = True, apart: bool = False) -> NetMachine:
        """`apart`: a network between us and it that leads to no other machine."""
        number = 11 + len(self.machines)
        name = f"{self.mark}-{number}"
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        self._cable(name, "eth0", "p", f"{self.public}.{number}", apart=apart)
        if private:
            self._cable(name, "eth1", "q", f"{self.private}.{number}")
        machine = NetMachine(
            self.folder / name,
            name=name,
            public=f"{self.public}.{number}",
            private=f"{self.private}.{number}" if private else "",
            welcome=self.welcome,
        )
        self.machines.append(machine)
        # pytest-socket lets tests reach loopback only; these lie on this machine as well.
        pytest_socket.socket_allow_hosts(
            ["127.0.0.1", "::1", *(each.public for each in self.machines)], allow_unix_socket=True
        )
        machine.start()
        return machine

    def _cable(self, name: str, card: str, kind: str, address: str, *, apart: bool = False) -> None:
        ours = f"{self.mark}{kind}{len(self.machines)}"
        ip("link", "add", ours, "type", "veth", "peer", "name", card, "netns", name)
        ip("link", "set", ours, "master", f"{self.mark}{kind}", "up")
        if apart:
            subprocess.run(["bridge", "link", "set", "dev", ours, "isolated", "on"], check=True)
        ip("-n", name, "addr", "add", f"{address}/24", "dev", card)
        ip("-n", name, "link", "set", card, "up")

    def remove(self) -> None:
        for machine in self.machines:
            if machine.process.poll() is None:
                machine.power_off()
            end_jobs(machine.jobs)
            ip("netns", "del", machine.name)
        for kind in ("p", "q"):
            ip("link", "del", f"{self.mark}{kind}")


@contextmanager
def network(folder: Path, *, welcome: str) -> Iterator[Network]:
    needs_namespaces()
    with ExitStack() as stack:
        made = Network(folder, welcome)
        made.make()
        stack.callback(made.remove)
        yield made


def wait_until(is_so, *, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to it"
        time.sleep(0.05)
