"""SSH to machines: a connection to an address under the guard, through jump hosts where it names some, each host key pinned, and HTTP through it to
the machine's own loopback.

No port is opened here, nothing runs there. No Django: the guard, the private key and the pinned host key are arguments.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncssh
import httpcore
import httpx

from fleet.guard import Guard
from fleet.inventory.ssh import is_host, is_user

DEFAULT_PORT = 22
MAX_HOPS = 3
# Who asks is one machine's exporter: anything else that runs there is reached by other means.
LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
_ADDRESS = re.compile(r"(?P<user>[^@\s]+)@(?:\[(?P<v6>[^\]\s]+)\]|(?P<host>[^:@\s\[\]]+))(?::(?P<port>\d{1,5}))?")


class RemoteError(Exception):
    """`code`: no_key_fits, host_key_new, host_key_changed, unreachable, forward, broken. `offered`: the host key that was shown, OpenSSH form; `at`: by whom,
    where it was not the machine itself.
    """

    def __init__(self, code: str, detail: str = "", *, offered: str = "", at: SshAddress | None = None) -> None:
        super().__init__(code)
        self.code, self.detail, self.offered, self.at = code, detail, offered, at


@dataclass(frozen=True, slots=True)
class SshAddress:
    """`via`: jump hosts in the order in which they are passed, each with the host key that is `pinned` for it, "" = none yet."""

    user: str
    host: str
    port: int = DEFAULT_PORT
    via: tuple[SshAddress, ...] = ()
    pinned: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> SshAddress:
        """`user@host`, `user@host:22`, `user@[2001:db8::1]:22`. Raises ValueError."""
        match = _ADDRESS.fullmatch(text.strip())
        host = (match["v6"] or match["host"]) if match else ""
        port = int(match["port"] or DEFAULT_PORT) if match else 0
        if match is None or not is_user(match["user"]) or not is_host(host) or not 0 < port < 65_536:
            raise ValueError("Write it as user@host or user@host:port.")
        return cls(match["user"], host, port)

    @classmethod
    def parse_way(cls, text: str) -> SshAddress:
        """As `parse`, with jump hosts: `user@host via user@first.example, user@second.example:2222`. Raises ValueError."""
        target, said_via, hops = text.partition(" via ")
        address = cls.parse(target)
        if not said_via:
            return address
        found = tuple(cls.parse(hop) for hop in hops.split(","))
        if len(found) > MAX_HOPS:
            raise ValueError(f"At most {MAX_HOPS} jump hosts.")
        return cls(address.user, address.host, address.port, found)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        via = f" via {', '.join(str(hop) for hop in self.via)}" if self.via else ""
        return f"{self.user}@{host}:{self.port}{via}"


# Private networks behind a jump host are what it is there for; metadata services are never asked, by nobody.
_ANYWHERE = Guard.of(["0.0.0.0/0", "::/0"])


class _Client(asyncssh.SSHClient):
    """Takes the pinned host key and no other; keeps what was shown instead."""

    def __init__(self, pinned: str) -> None:
        self.pinned = asyncssh.import_public_key(pinned) if pinned else None
        self.offered = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        if self.pinned is not None and key.public_data == self.pinned.public_data:
            return True
        self.offered = key.export_public_key().decode().strip()
        return False

    @property
    def algorithms(self) -> list[str]:
        """A pinned key is asked for by its kind: a server that has several must not look as if it had changed."""
        return [name.decode() for name in self.pinned.sig_algorithms] if self.pinned else []


@asynccontextmanager
async def open_ssh(
    address: SshAddress, *, guard: Guard, private_key: str, pinned: str
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Raises RemoteError and RefusedAddressError. How long it may take is the caller's to say (asyncio.timeout).

    Our own network is what the guard keeps: it looks at the first address, to which we connect. The others are names in the network of the hop before
    them, who connects; what is said to each is between it and us, so that no hop reads or writes along.
    """
    async with AsyncExitStack() as stack:
        tunnel: asyncssh.SSHClientConnection | None = None
        for hop in address.via:
            signed_in = _signed_in(hop, guard=guard, private_key=private_key, pinned=hop.pinned, tunnel=tunnel)
            tunnel = await stack.enter_async_context(_says_where(signed_in, hop))
        signed_in = _signed_in(address, guard=guard, private_key=private_key, pinned=pinned, tunnel=tunnel)
        yield await stack.enter_async_context(signed_in)


@asynccontextmanager
async def _says_where(
    signed_in: AbstractAsyncContextManager[asyncssh.SSHClientConnection], hop: SshAddress
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(signed_in)
        except RemoteError as error:
            raise RemoteError(error.code, error.detail or str(hop), offered=error.offered, at=hop) from None
        yield connection


@asynccontextmanager
async def _signed_in(
    address: SshAddress,
    *,
    guard: Guard,
    private_key: str,
    pinned: str,
    tunnel: asyncssh.SSHClientConnection | None,
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    if tunnel is None:
        reached = str(await guard.resolve(address.host, address.port))
    else:
        _ANYWHERE.check_host(address.host)
        reached = address.host
    client = _Client(pinned)
    try:
        connection = await asyncssh.connect(
            reached,
            address.port,
            tunnel=tunnel or (),
            username=address.user,
            client_factory=lambda: client,
            client_keys=[asyncssh.import_private_key(private_key)],
            known_hosts=([], [], []),
            server_host_key_algs=client.algorithms or (),
            # Nothing of whoever runs the worker: no agent, no configuration, no other way to sign in.
            agent_path=None,
            config=None,
            password=None,
            preferred_auth="publickey",
            gss_host=None,
            x509_trusted_certs=None,
        )
    except asyncssh.HostKeyNotVerifiable:
        code = "host_key_changed" if pinned else "host_key_new"
        raise RemoteError(code, fingerprint(client.offered), offered=client.offered) from None
    except asyncssh.ChannelOpenError:
        # The hop before it does not get there.
        raise RemoteError("unreachable", str(address)) from None
    except asyncssh.PermissionDenied:
        raise RemoteError("no_key_fits", address.user) from None
    except asyncssh.Error as error:
        raise RemoteError("broken", type(error).__name__) from None
    except OSError:
        raise RemoteError("unreachable") from None
    try:
        yield connection
    finally:
        # Not closed politely: whoever is at the other end could make that last.
        connection.abort()


def fingerprint(public_key: str) -> str:
    """`SHA256:…`, as ssh and ssh-keygen show it; "" for no key."""
    return asyncssh.import_public_key(public_key).get_fingerprint() if public_key else ""


class ThroughSsh(httpx.AsyncBaseTransport):
    """HTTP to ports of the machine's own loopback, whatever the name in the address says it is. `most_connections`: at once; further requests wait."""

    def __init__(self, connection: asyncssh.SSHClientConnection, *, most_connections: int = 10) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=_Forwards(connection), max_connections=most_connections, max_keepalive_connections=0
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme != "http" or request.url.host not in LOOPBACK:
            raise RemoteError("forward", str(request.url.port or 80))
        asked = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=b"http", host=request.url.host.encode(), port=request.url.port or 80, target=request.url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(asked)
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise RemoteError("broken", type(error).__name__) from None
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.aiter_stream():
                yield chunk
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise RemoteError("broken", type(error).__name__) from None

    async def aclose(self) -> None:
        await self._answer.aclose()


class _Forwards(httpcore.AsyncNetworkBackend):
    """Each connection is a direct-tcpip channel of the one SSH connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore declares it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            reader, writer = await self._connection.open_connection(LOOPBACK[host], port)
        except asyncssh.ChannelOpenError:
            raise RemoteError("forward", str(port)) from None
        except (asyncssh.Error, OSError) as error:
            raise RemoteError("broken", type(error).__name__) from None
        return _Stream(reader, writer)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as httpcore declares it
        try:
            return await self._reader.read(max_bytes)
        except (asyncssh.Error, OSError) as error:
            raise httpcore.ReadError(type(error).__name__) from None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as httpcore declares it
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except (asyncssh.Error, OSError) as error:
            raise httpcore.WriteError(type(error).__name__) from None

    async def aclose(self) -> None:
        self._writer.channel.abort()

    def get_extra_info(self, info: str) -> Any:
        return None
