"""A load test against the replicas of a job, each through its own SSH connection: no other address can be reached from here. No database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, ThroughSsh, open_ssh
from jobs.loadtest.asking import Question, ask
from jobs.loadtest.figures import StageFigures
from jobs.loadtest.plan import MOST_AT_ONCE
from jobs.loadtest.sample import Sample
from jobs.loadtest.stage import Course, run_stages
from jobs.loadtest.watch import Peaks, Watch

CONNECT_SECONDS = 20.0
HOPELESS = 0.5
MODELS_SECONDS, MOST_MODELS_BYTES = 15.0, 1024 * 1024


class LoadFailed(Exception):
    """The test could not go on. `code`: of words.WHYS."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class Replica:
    """`addresses`: with the host key that is pinned for each."""

    rank: int
    addresses: Sequence[tuple[SshAddress, str]]
    private_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StageDone:
    figures: StageFigures
    peaks: Peaks


async def load(
    course: Course, replicas: Sequence[Replica], question: Question, *, guard: Guard, tell: Callable[[StageDone], None]
) -> None:
    """`tell` hears of each stage as it ends. Raises LoadFailed."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        clients = [await stack.enter_async_context(reached(replica, guard)) for replica in replicas]
        question = await ready(clients, question)
        watch = Watch(clients, question)
        watching = group.create_task(watch.keep_looking())
        clock = asyncio.get_running_loop().time

        async def of_next(number: int) -> Sample:
            place = number % len(clients)
            return await ask(clients[place], question, number, clock=clock, replica=replicas[place].rank)

        async for figures in run_stages(course, of_next):
            tell(StageDone(figures, watch.take()))
            if figures.failed_share > HOPELESS:
                # More load makes it no better, and the server's own callers no happier.
                break
        watching.cancel()


@asynccontextmanager
async def reached(replica: Replica, guard: Guard) -> AsyncIterator[httpx.AsyncClient]:
    """By the first address that lets us in. Raises LoadFailed."""
    failure = LoadFailed("no_address")
    for address, pinned in replica.addresses:
        try:
            async with _client(address, pinned, replica.private_key, guard) as client:
                yield client
                return
        except LoadFailed as error:
            failure = error
    raise failure


@asynccontextmanager
async def _client(address: SshAddress, pinned: str, private_key: str, guard: Guard) -> AsyncIterator[httpx.AsyncClient]:
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await stack.enter_async_context(
                    open_ssh(address, guard=guard, private_key=private_key, pinned=pinned)
                )
        except TimeoutError:
            raise LoadFailed("timeout") from None
        except RefusedAddressError:
            raise LoadFailed("refused_address") from None
        except RemoteError as error:
            raise LoadFailed(error.code) from None
        transport = ThroughSsh(connection, most_connections=MOST_AT_ONCE + 4)
        yield await stack.enter_async_context(httpx.AsyncClient(transport=transport, trust_env=False))


async def ready(clients: Sequence[httpx.AsyncClient], question: Question) -> Question:
    """The question with a model that the server has, after one of it was answered by each replica: its time counts nowhere. Raises LoadFailed."""
    if not question.model:
        question = question.about(await first_model(clients[0], question))
    clock = asyncio.get_running_loop().time
    for client in clients:
        if error := (await ask(client, question, 0, clock=clock)).error:
            raise LoadFailed("first_request", error)
    return question


async def first_model(client: httpx.AsyncClient, question: Question) -> str:
    """As /v1/models names it. Raises LoadFailed."""
    try:
        async with asyncio.timeout(MODELS_SECONDS):
            answer = await _small(client, f"{question.base}/v1/models", question.headers)
            name = answer.json()["data"][0]["id"]
    except (TimeoutError, httpx.HTTPError, RemoteError, ValueError, LookupError, TypeError, RecursionError):
        raise LoadFailed("no_model") from None
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise LoadFailed("no_model")
    return name


async def _small(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> httpx.Response:
    body = bytearray()
    async with client.stream("GET", url, headers=headers, timeout=MODELS_SECONDS) as response:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MOST_MODELS_BYTES:
                raise LoadFailed("no_model")
    return httpx.Response(response.status_code, content=bytes(body))
