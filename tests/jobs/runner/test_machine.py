"""A job on a machine, over a real OpenSSH server: launched once, outlives connections, is looked at, read and stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from fleet.guard import Guard
from fleet.inventory.remote import SshAddress, open_ssh
from jobs.book.names import new_marker
from jobs.runner.machine import Machine, RunnerError, Seen, SentFile, environment_file, packed
from tests.jobs.machines import SshMachine, ssh_machine

KEY = asyncssh.generate_private_key("ssh-ed25519")
LOOPBACK = Guard.of(["127.0.0.0/8"])
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    with ssh_machine(tmp_path_factory.mktemp("machine"), welcome=KEY.export_public_key().decode().strip()) as machine:
        yield machine


@asynccontextmanager
async def reached(server: SshMachine, marker: str) -> AsyncIterator[Machine]:
    address = SshAddress.parse(server.address)
    private = KEY.export_private_key().decode()
    async with open_ssh(address, guard=LOOPBACK, private_key=private, pinned=server.host_key) as connection:
        yield Machine(connection, marker)


def files(command: str, **environment: str) -> list[SentFile]:
    return [SentFile("command.sh", command.encode()), SentFile("environment", environment_file(environment))]


async def begun(server: SshMachine, command: str, **environment: str) -> str:
    marker = new_marker()
    async with reached(server, marker) as machine:
        await machine.prepare(files(command, **environment))
        assert await machine.launch()
    return marker


async def until_it_ended(machine: Machine) -> Seen:
    while (seen := await machine.look()).alive:  # noqa: ASYNC110 - another machine tells of it only when it is asked
        await asyncio.sleep(0.05)
    return seen


async def until_it_is_up(machine: Machine) -> None:
    while await machine.read_log(0) != b"up\n":  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)


async def ended(server: SshMachine, marker: str) -> Seen:
    async with reached(server, marker) as machine:
        return await until_it_ended(machine)


async def log_of(server: SshMachine, marker: str, offset: int = 0) -> bytes:
    async with reached(server, marker) as machine:
        return await machine.read_log(offset)


@pytest.mark.parametrize("code", [0, 3, 255])
async def test_it_ends_with_its_own_code(server: SshMachine, code: int) -> None:
    marker = await begun(server, f"echo working; exit {code}")
    seen = await ended(server, marker)
    assert (seen.launched, seen.alive, seen.exit_code, seen.rebooted, seen.is_lost) == (True, False, code, False, False)
    assert await log_of(server, marker) == b"working\n"
    assert seen.log_size == 8


async def test_it_outlives_every_connection(server: SshMachine) -> None:
    marker = await begun(server, "while [ ! -f go ]; do sleep 0.05; done; echo went on")
    server.end_connections()
    async with reached(server, marker) as machine:
        assert (await machine.look()).alive
    (server.jobs / marker / "work" / "go").touch()
    assert (await ended(server, marker)).exit_code == 0
    assert await log_of(server, marker) == b"went on\n"


async def test_it_is_launched_once_however_often_it_is_asked_for(server: SshMachine) -> None:
    marker = new_marker()
    async with reached(server, marker) as machine:
        await machine.prepare(files("echo once >> ../count"))
        answers = await asyncio.gather(*(machine.launch() for _number in range(6)))
    assert sorted(answers) == [False] * 5 + [True]
    await ended(server, marker)
    assert (server.jobs / marker / "count").read_text() == "once\n"


async def test_a_job_that_was_never_prepared_is_not_launched(server: SshMachine) -> None:
    async with reached(server, new_marker()) as machine:
        with pytest.raises(RunnerError, match="refused"):
            await machine.launch()
        assert not (await machine.look()).launched


async def test_the_log_is_read_from_any_byte(server: SshMachine) -> None:
    marker = await begun(server, "printf 'one\\ntwo\\n'; printf '\\377\\000end' >&2")
    await ended(server, marker)
    assert await log_of(server, marker) == b"one\ntwo\n\xff\x00end"
    assert await log_of(server, marker, 4) == b"two\n\xff\x00end"
    assert await log_of(server, marker, 99) == b""
    async with reached(server, marker) as machine:
        assert await machine.read_log(0, 5) == b"one\nt"


@pytest.mark.parametrize("name", ["TERM", "KILL"])
async def test_stopping_reaches_the_whole_tree(server: SshMachine, name: str) -> None:
    """Also a child with a session of its own, and one that forgot its environment."""
    marker = await begun(server, "setsid sleep 600 & env -i sleep 600 & sleep 600 & echo $! > mine; echo up; wait")
    async with reached(server, marker) as machine:
        await until_it_is_up(machine)
        assert await machine.signal(name) >= 4  # type: ignore[arg-type]
    seen = await ended(server, marker)
    assert seen.exit_code == 128 + (signal.SIGTERM if name == "TERM" else signal.SIGKILL)
    assert not _left(marker)


async def test_who_does_not_listen_is_ended_firmly(server: SshMachine) -> None:
    marker = await begun(server, "trap '' TERM; echo up; while :; do sleep 0.1; done")
    async with reached(server, marker) as machine:
        await until_it_is_up(machine)
        await machine.signal("TERM")
        assert (await machine.look()).alive
        await machine.signal("KILL")
    assert (await ended(server, marker)).exit_code == 137


async def test_killed_with_its_keeper_it_is_lost(server: SshMachine) -> None:
    marker = await begun(server, "echo up; sleep 600")
    async with reached(server, marker) as machine:
        pid = (await machine.look()).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await machine.signal("KILL")
        seen = await until_it_ended(machine)
    assert (seen.is_lost, seen.exit_code) == (True, None)


async def test_after_a_reboot_the_same_pid_is_somebody_elses(server: SshMachine) -> None:
    marker = await begun(server, "echo up; sleep 600")
    (server.jobs / marker / "boot").write_text("another-boot\n")
    async with reached(server, marker) as machine:
        seen = await machine.look()
        await machine.signal("KILL")
    assert (seen.alive, seen.rebooted, seen.is_lost) == (False, True, True)


async def test_secrets_reach_the_command_and_leave_the_disk(server: SshMachine) -> None:
    marker = await begun(
        server, 'printf "%s" "$TOKEN" > got; env | grep -c RACKRENT_JOB', TOKEN='it\'s $(a) "secret"\n2'
    )
    await ended(server, marker)
    assert (server.jobs / marker / "work" / "got").read_text() == 'it\'s $(a) "secret"\n2'
    assert not (server.jobs / marker / "environment").exists()
    assert (server.jobs / marker).stat().st_mode & 0o077 == 0


async def test_what_was_typed_cannot_leave_its_files(server: SshMachine) -> None:
    with pytest.raises(ValueError, match="leads out"):
        packed([SentFile("../../.ssh/authorized_keys", b"mine")])
    with pytest.raises(ValueError, match="environment variable"):
        environment_file({"A=$(touch /x)": "1"})
    with pytest.raises(ValueError, match="marks no job"):
        async with reached(server, "rr-job-x; rm -rf /"):
            pass


async def test_it_is_forgotten_only_when_it_has_ended(server: SshMachine) -> None:
    marker = await begun(server, "sleep 600")
    async with reached(server, marker) as machine:
        with pytest.raises(RunnerError, match="refused"):
            await machine.forget()
        await machine.signal("KILL")
    await ended(server, marker)
    async with reached(server, marker) as machine:
        await machine.forget()
    assert not (server.jobs / marker).exists()


def _left(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"RACKRENT_JOB={marker}".encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
