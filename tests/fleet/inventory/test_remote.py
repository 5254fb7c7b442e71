"""HTTP to a machine's loopback through SSH: with the pinned host key and our key, and with nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import asyncssh
import httpx
import pytest

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, ThroughSsh, fingerprint, open_ssh
from tests.fakes.exporter import FakeExporter, answer, serving
from tests.fakes.ssh_server import FakeSshServer, running

LOOPBACK = Guard.of(["127.0.0.0/8"])
KEY = asyncssh.generate_private_key("ssh-ed25519")
OURS, PUBLIC = KEY.export_private_key().decode(), KEY.export_public_key().decode()
PAGE = "node_load1 1\n"


@pytest.fixture
def exporter() -> Iterator[FakeExporter]:
    with serving(FakeExporter()) as fake:
        fake.pages["/metrics"] = answer(PAGE)
        yield fake


@pytest.fixture
def server() -> Iterator[FakeSshServer]:
    with running(FakeSshServer(welcome=[PUBLIC])) as fake:
        yield fake


def public(server: FakeSshServer) -> str:
    return server.host_key.export_public_key().decode().strip()


async def fetch(
    server: FakeSshServer, url: str, *, pinned: str | None = None, guard: Guard = LOOPBACK, key: str = OURS
) -> httpx.Response:
    address = SshAddress("worker", "127.0.0.1", server.port)
    trusted = public(server) if pinned is None else pinned
    async with (
        asyncio.timeout(20),
        open_ssh(address, guard=guard, private_key=key, pinned=trusted) as connection,
        httpx.AsyncClient(transport=ThroughSsh(connection)) as client,
    ):
        return await client.get(url)


async def test_a_page_of_the_machines_loopback_is_read(server, exporter):
    answered = await fetch(server, exporter.url("/metrics"))
    assert (answered.status_code, answered.text) == (200, PAGE)
    assert server.users == ["worker"]
    assert server.forwarded == [("127.0.0.1", httpx.URL(exporter.url("/metrics")).port)]
    assert server.executed == []


async def test_a_key_that_nobody_confirmed_is_shown_and_not_trusted(server, exporter):
    with pytest.raises(RemoteError) as refused:
        await fetch(server, exporter.url("/metrics"), pinned="")
    assert (refused.value.code, refused.value.offered) == ("host_key_new", public(server))
    assert refused.value.detail == fingerprint(public(server))
    assert server.users == [], "nobody signs in before the key is known"


async def test_another_key_than_the_confirmed_one_is_refused(server, exporter):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with pytest.raises(RemoteError) as refused:
        await fetch(server, exporter.url("/metrics"), pinned=other)
    assert refused.value.code == "host_key_changed"
    assert server.users == []


async def test_a_server_with_several_keys_is_asked_for_the_confirmed_kind(exporter):
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    with running(FakeSshServer(welcome=[PUBLIC], host_key=ecdsa)) as server:
        assert (await fetch(server, exporter.url("/metrics"))).status_code == 200
        with pytest.raises(RemoteError):
            await fetch(server, exporter.url("/metrics"), pinned=PUBLIC)


async def test_a_machine_that_does_not_know_our_key(server, exporter):
    stranger = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    with pytest.raises(RemoteError) as refused:
        await fetch(server, exporter.url("/metrics"), key=stranger)
    assert (refused.value.code, refused.value.detail) == ("no_key_fits", "worker")


async def test_nothing_listens_on_that_port_there(server):
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    with pytest.raises(RemoteError) as refused:
        await fetch(server, f"http://127.0.0.1:{port}/metrics")
    assert (refused.value.code, refused.value.detail) == ("forward", str(port))


async def test_a_server_that_forwards_nothing(exporter):
    with running(FakeSshServer(welcome=[PUBLIC], forwards=False)) as server, pytest.raises(RemoteError) as refused:
        await fetch(server, exporter.url("/metrics"))
    assert refused.value.code == "forward"


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/metrics", "http://exporter.example/metrics", "https://127.0.0.1/metrics"]
)
async def test_nothing_beyond_the_machines_own_loopback_is_reached(server, url):
    with pytest.raises(RemoteError):
        await fetch(server, url)
    assert server.forwarded == []


async def test_the_ssh_address_is_under_the_guard(server, exporter):
    with pytest.raises(RefusedAddressError):
        await fetch(server, exporter.url("/metrics"), guard=Guard())
    assert server.users == []


@contextmanager
def listener(greeting: bytes) -> Iterator[int]:
    """Something that is no SSH server."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        loop = asyncio.get_running_loop()

        async def serve() -> None:
            one.setblocking(False)
            accepted, _ = await loop.sock_accept(one)
            with accepted:
                await loop.sock_sendall(accepted, greeting)

        task = loop.create_task(serve())
        yield one.getsockname()[1]
        task.cancel()


async def test_what_speaks_no_ssh(exporter):
    with listener(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port, pytest.raises(RemoteError) as refused:
        await fetch(FakeSshServer(port=port), exporter.url("/metrics"))
    assert refused.value.code == "broken"


async def test_nobody_answers_there(exporter):
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    with pytest.raises(RemoteError) as refused:
        await fetch(FakeSshServer(port=port), exporter.url("/metrics"))
    assert refused.value.code == "unreachable"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("root@203.0.114.7", "root@203.0.114.7:22"),
        ("worker@gpu.example:2222", "worker@gpu.example:2222"),
        ("root@[2606:4700::1]:22", "root@[2606:4700::1]:22"),
    ],
)
def test_addresses(text, said):
    assert str(SshAddress.parse(text)) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "@host",
        "root@",
        "root@-oProxyCommand=x",
        "-root@host",
        "root@ho st",
        "root@host:0",
        "root@host:70000",
        "root@host:x",
        "a@b@c",
        "root@::1",
        "root@[host]x",
    ],
)
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="user@host"):
        SshAddress.parse(text)


def through(server: FakeSshServer, jump: FakeSshServer, *, pinned: str | None = None) -> SshAddress:
    hop = SshAddress("jumper", "127.0.0.1", jump.port, pinned=public(jump) if pinned is None else pinned)
    return SshAddress("worker", "127.0.0.1", server.port, (hop,))


async def test_a_jump_host_passes_it_on(server, exporter):
    with running(FakeSshServer(welcome=[PUBLIC])) as jump:
        async with (
            asyncio.timeout(20),
            open_ssh(through(server, jump), guard=LOOPBACK, private_key=OURS, pinned=public(server)) as connection,
            httpx.AsyncClient(transport=ThroughSsh(connection)) as client,
        ):
            assert (await client.get(exporter.url("/metrics"))).text == PAGE
        assert (jump.users, server.users) == (["jumper"], ["worker"])
        assert jump.forwarded == [("127.0.0.1", server.port)]


async def test_a_jump_host_that_nobody_confirmed_hears_of_nothing(server):
    with running(FakeSshServer(welcome=[PUBLIC])) as jump:
        address = through(server, jump, pinned="")
        with pytest.raises(RemoteError) as refused:
            async with open_ssh(address, guard=LOOPBACK, private_key=OURS, pinned=public(server)):
                pass
    assert (refused.value.code, refused.value.offered, refused.value.at) == (
        "host_key_new",
        public(jump),
        address.via[0],
    )
    assert (jump.users, server.users) == ([], [])


async def test_a_jump_host_that_does_not_get_there(server):
    with running(FakeSshServer(welcome=[PUBLIC], forwards=False)) as jump, pytest.raises(RemoteError) as refused:
        async with open_ssh(through(server, jump), guard=LOOPBACK, private_key=OURS, pinned=public(server)):
            pass
    assert (refused.value.code, refused.value.at) == ("unreachable", None)


async def test_the_guard_looks_at_the_first_hop_and_metadata_is_never_asked(server):
    with running(FakeSshServer(welcome=[PUBLIC])) as jump:
        with pytest.raises(RefusedAddressError):
            async with open_ssh(through(server, jump), guard=Guard(), private_key=OURS, pinned=public(server)):
                pass
        assert jump.users == []
        address = SshAddress("root", "169.254.169.254", 22, through(server, jump).via)
        with pytest.raises(RefusedAddressError):
            async with open_ssh(address, guard=LOOPBACK, private_key=OURS, pinned=public(server)):
                pass
        assert jump.forwarded == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("root@10.0.0.4 via me@jump.example", "root@10.0.0.4:22 via me@jump.example:22"),
        ("root@[fd00::4]:2200 via a@b:1,c@[2001:db8::1]", "root@[fd00::4]:2200 via a@b:1, c@[2001:db8::1]:22"),
        ("root@10.0.0.4", "root@10.0.0.4:22"),
    ],
)
def test_ways(text, said):
    assert str(SshAddress.parse_way(text)) == said
    assert SshAddress.parse_way(said) == SshAddress.parse_way(text)


@pytest.mark.parametrize(
    "text",
    [
        "root@10.0.0.4 via ",
        "root@10.0.0.4 via jump",
        "root@10.0.0.4 via a@b via c@d",
        "root@a via -x@b",
        "root@a via a@b,",
        "root@a via a@b,a@c,a@d,a@e",
    ],
)
def test_what_is_no_way(text):
    with pytest.raises(ValueError, match=r"user@host|jump hosts"):
        SshAddress.parse_way(text)
    with pytest.raises(ValueError, match="user@host"):
        SshAddress.parse(text)
