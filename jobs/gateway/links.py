"""From sockets of our own to the replicas: one SSH connection each, kept up, its socket there only while the server behind it is well.

nginx goes to another replica where there is no socket, before it has sent anything. No database.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import httpx

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, ThroughSsh, open_ssh
from jobs.gateway.later import MOST_ANSWER_BYTES, Sending, Sent

LOOK_SECONDS, HEALTH_SECONDS, CONNECT_SECONDS = 2.0, 5.0, 20.0
# A replica that answered late once or twice is not taken out.
FAILURES = 3
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class Link:
    """To `port` on the loopback of a machine. `addresses`: with the host key that is pinned for each."""

    name: str
    port: int
    health_path: str
    addresses: tuple[tuple[SshAddress, str], ...]
    private_key: str = field(repr=False)


class Links:
    """Its event loop has a thread of its own. `up`: the links whose socket is there. `sent`: what became of requests that were to be sent."""

    def __init__(self, directory: Path, guard: Guard) -> None:
        self.up: frozenset[str] = frozenset()
        self.sent: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        self.under_way = 0
        self._directory, self._guard = directory, guard
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[Link, asyncio.Task[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway-links")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def socket(self, name: str) -> Path:
        return self._directory / f"{name}.sock"

    def want(self, links: Sequence[Link]) -> None:
        """From now on these and no others; one that has changed is made anew."""
        self._loop.call_soon_threadsafe(self._want, frozenset(links))

    def send(self, sendings: Sequence[Sending], inner: Path) -> None:
        for sending in sendings:
            self._loop.call_soon_threadsafe(self._begin_sending, sending, inner)

    def _want(self, links: frozenset[Link]) -> None:
        for link in set(self._tasks) - links:
            self._tasks.pop(link).cancel()
        for link in links - set(self._tasks):
            self._tasks[link] = self._loop.create_task(self._keep(link))

    async def _end_all(self) -> None:
        tasks = [*self._tasks.values(), *self._sending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, link: Link) -> None:
        pause = SHORTEST_PAUSE
        while True:
            if await self._connected(link):
                pause = SHORTEST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _connected(self, link: Link) -> bool:
        """Until the connection ends. Whether it ever was one."""
        for address, pinned in link.addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS) as connecting:
                    way = open_ssh(address, guard=self._guard, private_key=link.private_key, pinned=pinned)
                    async with way as connection:
                        connecting.reschedule(None)
                        await self._serve(link, connection)
                        return True
            except (TimeoutError, RemoteError, RefusedAddressError, asyncssh.Error, OSError):
                continue
        return False

    async def _serve(self, link: Link, connection: asyncssh.SSHClientConnection) -> None:
        listener: asyncssh.SSHListener | None = None
        failures = FAILURES
        transport = ThroughSsh(connection)
        try:
            async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
                while not connection.is_closed():
                    failures = 0 if await is_well(client, link) else failures + 1
                    if failures == 0 and listener is None:
                        listener = await self._open(link, connection)
                    elif failures >= FAILURES and listener is not None:
                        self._shut(link, listener)
                        listener = None
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._shut(link, listener)

    async def _open(self, link: Link, connection: asyncssh.SSHClientConnection) -> asyncssh.SSHListener:
        place = self.socket(link.name)
        place.unlink(missing_ok=True)
        listener = await connection.forward_local_path_to_port(str(place), "127.0.0.1", link.port)
        # Whoever may enter the directory may connect: nginx has another account where we are root.
        place.chmod(0o666)
        self.up |= {link.name}
        return listener

    def _shut(self, link: Link, listener: asyncssh.SSHListener | None) -> None:
        self.up -= {link.name}
        if listener is not None:
            listener.close()
        self.socket(link.name).unlink(missing_ok=True)

    def _begin_sending(self, sending: Sending, inner: Path) -> None:
        self.under_way += 1
        task = self._loop.create_task(self._send(sending, inner))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, sending: Sending, inner: Path) -> None:
        sent = Sent(sending.number, None)
        try:
            transport = httpx.AsyncHTTPTransport(uds=str(inner))
            async with (
                asyncio.timeout(sending.seconds + 60),
                httpx.AsyncClient(transport=transport, trust_env=False, timeout=sending.seconds + 60) as client,
            ):
                sent = await answer_of(client, sending)
        except httpx.ConnectError:
            # It has reached nobody.
            sent = Sent(sending.number, 503)
        except (TimeoutError, httpx.HTTPError):
            sent = Sent(sending.number, None)
        finally:
            self.under_way -= 1
            self.sent.put(sent)


async def is_well(client: httpx.AsyncClient, link: Link) -> bool:
    url = f"http://127.0.0.1:{link.port}{link.health_path}"
    try:
        async with asyncio.timeout(HEALTH_SECONDS), client.stream("GET", url) as response:
            return response.status_code == httpx.codes.OK
    except (TimeoutError, httpx.HTTPError, RemoteError):
        return False


async def answer_of(client: httpx.AsyncClient, sending: Sending) -> Sent:
    url = f"http://gateway/{sending.name}/v1/{sending.path}"
    headers = {"Content-Type": "application/json"}
    body = bytearray()
    async with client.stream("POST", url, content=sending.body, headers=headers) as response:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MOST_ANSWER_BYTES:
                return Sent(sending.number, 502, "text/plain", b"The answer was too large to be kept.")
    kind = response.headers.get("content-type", "")
    return Sent(sending.number, response.status_code, kind, bytes(body), seconds_of(response.headers))


def seconds_of(headers: Mapping[str, str]) -> int:
    with suppress(ValueError):
        return max(int(headers.get("retry-after", "2")), 1)
    return 2
