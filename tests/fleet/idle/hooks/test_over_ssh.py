"""The fixed commands over a real SSH connection: what they say, and what is run only when the file is root's alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncssh
import pytest

from fleet.guard import Guard
from fleet.idle.hooks.over_ssh import IS_THERE, KEPT_BYTES, RUN, WHOSE, Ran, is_roots_alone, run_over_ssh
from fleet.inventory.remote import SshAddress
from fleet.telemetry.scrape.through_ssh import SshRoute
from tests.fakes.ssh_server import FakeSshServer, running

SAFE = "0 755 directory\n0 755 directory\n0 755 directory\n0 700 regular file\n"
GUARD = Guard.of(["127.0.0.0/8"])
KEY = asyncssh.generate_private_key("ssh-ed25519")


@pytest.fixture
def server() -> Iterator[FakeSshServer]:
    with running(FakeSshServer(welcome=[KEY.export_public_key().decode()])) as fake:
        fake.answers = {IS_THERE: (0, ""), WHOSE: (0, SAFE), RUN: (0, "saved\ndone\n")}
        yield fake


def run(server: FakeSshServer, *, seconds: float = 10, pinned: str | None = None) -> Ran:
    shown = server.host_key.export_public_key().decode()
    route = SshRoute(
        SshAddress("root", "127.0.0.1", server.port),
        KEY.export_private_key().decode(),
        shown if pinned is None else pinned,
    )
    return asyncio.run(run_over_ssh(route, guard=GUARD, timeout_seconds=seconds))


def test_it_runs_and_its_last_line_is_kept(server):
    ran = run(server)
    assert (ran.code, ran.exit_code, ran.last_line) == ("", 0, "done")
    assert server.executed == [IS_THERE, WHOSE, RUN]


def test_it_says_no(server):
    server.answers[RUN] = (3, "disk full\x1b[31m\n")
    ran = run(server)
    assert (ran.code, ran.exit_code) == ("said_no", 3)
    assert ran.last_line == "disk full\ufffd[31m"


def test_a_machine_without_one(server):
    server.answers[IS_THERE] = (1, "")
    assert run(server).code == "none"
    assert server.executed == [IS_THERE]


def test_nobody_could_look(server):
    server.answers[IS_THERE] = (127, "")
    assert run(server).code == "not_looked_at"


@pytest.mark.parametrize(
    "listed",
    [
        SAFE.replace("0 700", "1000 700"),
        SAFE.replace("0 700", "0 722"),
        SAFE.replace("0 755 directory\n", "0 777 directory\n", 1),
        SAFE.replace("regular file", "symbolic link"),
        "",
        SAFE + "0 700 regular file\n",
        SAFE.replace("700", "7x0"),
    ],
)
def test_what_others_could_write_is_not_run(server, listed):
    assert not is_roots_alone(listed)
    server.answers[WHOSE] = (0, listed)
    assert run(server).code == "unsafe_file"
    assert RUN not in server.executed


def test_it_does_not_end_in_time(server):
    del server.answers[RUN]
    assert run(server, seconds=1).code == "no_end"


def test_a_flood_is_cut(server):
    server.answers[RUN] = (0, "x" * 1_000_000 + "\nlast\n")
    ran = run(server)
    assert ran.last_line == "last"
    assert len(ran.output) <= KEPT_BYTES


def test_another_host_key_runs_nothing(server):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    assert run(server, pinned=other).code == "ssh_host_key_changed"
    assert server.executed == []
