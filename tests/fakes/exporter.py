"""An HTTP server on loopback that serves exporters' pages, and misbehaves as told."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

Behaviour = Callable[[asyncio.StreamWriter, dict[str, str]], Awaitable[None]]


def answer(body: str | bytes, *, status: str = "200 OK", **headers: str) -> Behaviour:
    data = body.encode() if isinstance(body, str) else body

    async def behave(writer: asyncio.StreamWriter, _asked: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await writer.drain()

    return behave


def zipped(body: bytes) -> Behaviour:
    return answer(gzip.compress(body), Content_Encoding="gzip")


def only_with(token: str, body: str) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter, asked: dict[str, str]) -> None:
        right = asked.get("authorization") == f"Bearer {token}"
        await (answer(body) if right else answer("", status="401 Unauthorized"))(writer, asked)

    return behave


async def silent(writer: asyncio.StreamWriter, _asked: dict[str, str]) -> None:
    """Takes the request and never answers."""
    await asyncio.sleep(3600)


async def dripping(writer: asyncio.StreamWriter, _asked: dict[str, str]) -> None:
    """One byte at a time, for ever: every single read is in time."""
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.02)


async def endless(writer: asyncio.StreamWriter, _asked: dict[str, str]) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        writer.write(b"# nothing to see here\n" * 4096)
        await writer.drain()


async def resetting(writer: asyncio.StreamWriter, _asked: dict[str, str]) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nnode_load1 1\n")
    await writer.drain()
    writer.transport.abort()


@dataclass
class FakeExporter:
    """`pages`: behaviour by path. `asked`: the headers of every request, with its path under ":path"."""

    pages: dict[str, Behaviour] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            start = await reader.readexactly(1)
            if not start.isalpha():
                return  # A TLS hello: this one speaks none.
            first, *lines = (start + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name
            }
            headers[":path"] = first.split()[1]
            self.asked.append(headers)
            await self.pages.get(headers[":path"], answer("", status="404 Not Found"))(writer, headers)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@contextmanager
def serving(exporter: FakeExporter) -> Iterator[FakeExporter]:
    """In a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(exporter.serve, "127.0.0.1", 0))
    exporter.port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever, name="fake exporter")
    thread.start()
    try:
        yield exporter
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
