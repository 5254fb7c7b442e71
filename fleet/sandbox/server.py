"""One process for the whole sandbox: the provider's HTTP API on a loopback port and the agents, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import httpx
import uvicorn

from fleet.sandbox.agents import Crew
from fleet.sandbox.http_api import SandboxAPI

LOOPBACK = "127.0.0.1"
TIMEOUT_SECONDS = 30.0


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: the agents have to end as well, and their memory to be written."""
        yield


class PortTakenError(Exception):
    pass


def listen(port: int) -> socket.socket:
    """Raises PortTakenError with a remedy."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise PortTakenError(
            f"The sandbox cannot listen on {LOOPBACK}:{port}: {error.strerror}. Set SANDBOX_PORT to a free port, or SANDBOX=0."
        ) from error


def http_client() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=8, max_keepalive_connections=8, keepalive_expiry=30)
    # trust_env off: a proxy of the surroundings has no business between two processes of one machine.
    return httpx.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits, trust_env=False)


async def serve(listening: socket.socket, api: SandboxAPI, crew: Crew) -> None:
    """Runs provider and agents until SIGTERM or SIGINT."""
    config = uvicorn.Config(api, log_level="warning", access_log=False, lifespan="off", ws="none")
    server = _Server(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    reporting, stopping = asyncio.create_task(crew.run()), asyncio.create_task(stop.wait())
    await asyncio.wait({serving, reporting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    reporting.cancel()
    stopping.cancel()
    for result in await asyncio.gather(serving, reporting, stopping, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
