"""Open pages of machines, one each: over websockets, or asking every few seconds as pages do where sockets are blocked.

Says "ready" once all of them listen; ended by SIGTERM it prints one JSON object: `seen`, [number of the sample, epoch when it was there
for the first time] each, and `told`, [machine, epoch when its page was last told that it had missed something] each: by a message or by the end of its socket.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

# As static/js/live.js does it.
POLL_SECONDS, OVERLAP_SECONDS = 5.0, 2.0
OPENING_AT_ONCE = 10
# The server closes a connection that was silent for five seconds; a browser asks once more then, this client opens a new one before.
LIMITS = httpx.Limits(max_connections=64, keepalive_expiry=2.0)
TEAM = "bench"
# The reading that carries a sample's number.
NUMBER_FIELD = "disk_read_bytes_per_second"

_decode = msgspec.json.decode


@dataclass(slots=True)
class Pages:
    origin: str
    session_key: str
    seen: dict[int, float] = field(default_factory=dict)
    told: dict[int, float] = field(default_factory=dict)
    # People do not open their pages all in one moment.
    opening: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPENING_AT_ONCE))
    _listening: int = 0

    def listens(self, count: int) -> None:
        self._listening += 1
        if self._listening == count:
            sys.stdout.write("ready\n")
            sys.stdout.flush()

    def note(self, message: dict[str, Any]) -> None:
        now = time.time()
        for sample in message.get("samples", ()):
            if sample["host"] is not None:
                self.seen.setdefault(int(sample["host"][NUMBER_FIELD]), now)

    @property
    def headers(self) -> dict[str, str]:
        return {"Cookie": f"sessionid={self.session_key}"}


async def socket_page(pages: Pages, machine: int, count: int) -> None:
    async with AsyncExitStack() as stack:
        async with pages.opening:
            socket = await stack.enter_async_context(_connection(pages))
            await _subscribe(socket, machine)
        pages.listens(count)
        try:
            async for text in socket:
                message = _decode(text)
                if message["type"] == "gap":
                    pages.told[machine] = time.time()
                else:
                    pages.note(message)
        except ConnectionClosed:
            pass
        pages.told[machine] = time.time()


def _connection(pages: Pages) -> connect:
    address = f"{pages.origin.replace('http', 'ws', 1)}/ws/live/"
    headers, origin = pages.headers, Origin(pages.origin)
    return connect(address, additional_headers=headers, origin=origin, open_timeout=60)


async def _subscribe(socket: ClientConnection, machine: int) -> None:
    await socket.send(json.dumps({"subscribe": {"team": TEAM, "machines": [machine]}}))
    said = _decode(await socket.recv())
    if said["type"] != "subscribed":
        raise RuntimeError(f"The websocket was refused: {said}")


async def polling_page(pages: Pages, machine: int, count: int, http: httpx.AsyncClient) -> None:
    pages.listens(count)
    # Pages were not all opened in the same moment.
    await asyncio.sleep(random.uniform(0, POLL_SECONDS))
    since = time.time()
    while True:
        answer = await http.get(f"/t/{TEAM}/live/", params={"since": since - OVERLAP_SECONDS, "machines": machine})
        if answer.status_code == 503:
            await asyncio.sleep(float(answer.headers["Retry-After"]) * random.uniform(1, 2))
            continue
        answer.raise_for_status()
        told = answer.json()
        since = told["now"]
        for message in told["messages"]:
            pages.note(message)
        await asyncio.sleep(POLL_SECONDS)


async def listen(pages: Pages, mode: str, machines: list[int]) -> None:
    async with (
        httpx.AsyncClient(base_url=pages.origin, headers=pages.headers, timeout=60, limits=LIMITS) as http,
        asyncio.TaskGroup() as group,
    ):
        for machine in machines:
            page = (
                socket_page(pages, machine, len(machines))
                if mode == "socket"
                else polling_page(pages, machine, len(machines), http)
            )
            group.create_task(page)


async def main(port: int, session_key: str, mode: str, machines: list[int]) -> None:
    pages = Pages(f"http://127.0.0.1:{port}", session_key)
    listening = asyncio.create_task(listen(pages, mode, machines))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    ending = asyncio.create_task(ended.wait())
    await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
    seen = list(pages.seen.items())
    told = list(pages.told.items())
    # All pages ended by themselves, or one of them failed, which must be heard of.
    if listening.done():
        listening.result()
    listening.cancel()
    await asyncio.gather(listening, ending, return_exceptions=True) if ended.is_set() else ending.cancel()
    sys.stdout.write(json.dumps({"seen": seen, "told": told}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])))
