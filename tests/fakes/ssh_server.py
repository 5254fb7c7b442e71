"""An SSH server on loopback that forwards connections, as a rented machine's does: asyncssh in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import asyncssh


@dataclass
class FakeSshServer:
    """`welcome`: public keys, in OpenSSH form, of whoever is let in. What was asked of it is kept."""

    welcome: list[str] = field(default_factory=list)
    host_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    forwards: bool = True
    port: int = 0
    users: list[str] = field(default_factory=list)
    forwarded: list[tuple[str, int]] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    # command -> exit status and what it prints; any other hangs.
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    open: list[asyncssh.SSHServerConnection] = field(default_factory=list)


class _Server(asyncssh.SSHServer):
    def __init__(self, fake: FakeSshServer) -> None:
        self.fake = fake

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.fake.open.append(conn)

    def begin_auth(self, username: str) -> bool:
        self.fake.users.append(username)
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return any(asyncssh.import_public_key(known).public_data == key.public_data for known in self.fake.welcome)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        self.fake.forwarded.append((dest_host, dest_port))
        return self.fake.forwards


def _execute(fake: FakeSshServer, process: asyncssh.SSHServerProcess[str]) -> None:
    command = str(process.command)
    fake.executed.append(command)
    if command in fake.answers:
        status, text = fake.answers[command]
        process.stdout.write(text)
        process.exit(status)


@contextmanager
def running(fake: FakeSshServer) -> Iterator[FakeSshServer]:
    ready, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        listener = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: _Server(fake),
            server_host_keys=[fake.host_key],
            process_factory=lambda process: _execute(fake, process),
        )
        fake.port = listener.get_port()
        ready.set()
        await over.wait()
        listener.close()
        for connection in fake.open:
            connection.abort()
        await asyncio.gather(listener.wait_closed(), *(connection.wait_closed() for connection in fake.open))

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield fake
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(10)
