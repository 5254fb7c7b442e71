"""Reads the targets of one shard at once, on one event loop, and stores what they say through ingest's own writer.

Every target has its own connection and its own deadline: one that is slow or dead holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from psycopg_pool import AsyncConnectionPool

from fleet.guard import Guard
from fleet.telemetry.ingest.database import make_pool, reaching_database
from fleet.telemetry.ingest.errors import RefusalError
from fleet.telemetry.ingest.feeder import Feeder
from fleet.telemetry.ingest.group import Prepared
from fleet.telemetry.ingest.push import Publisher
from fleet.telemetry.ingest.registry import know_gpus, take_inventory
from fleet.telemetry.ingest.tally import count_stored
from fleet.telemetry.ingest.writer import Writer
from fleet.telemetry.readings import rows_of
from fleet.telemetry.sanitise import clean
from fleet.telemetry.scrape.dialects import WANTED, read_page
from fleet.telemetry.scrape.fetch import FetchError, fetch_page, make_client
from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import NotMetricsError, parse_page
from fleet.telemetry.scrape.plan import INTERVALS_UNTIL_SILENT, Job
from fleet.telemetry.scrape.readings import Scraped, UnusableError
from fleet.telemetry.scrape.through_ssh import fetch_through_ssh
from fleet.telemetry.wire import Batch, Sample

logger = logging.getLogger(__name__)

# So many connections at a time: a deadline must not run out because others are being parsed.
AT_ONCE = 64
# So many write what GPUs their machine has: the others would wait for a connection until the pool gives up on them.
INVENTORIES_AT_ONCE = 4
# Names are resolved in threads, and a name server that does not answer keeps its thread for seconds.
RESOLVERS = 64

_FEEDERS = """
SELECT i.id, h.instance_id IS NOT NULL, g.uuid, g.id, g.removed_at IS NULL, l.gpu_id IS NOT NULL
FROM fleet_instance i LEFT JOIN host_latest h ON h.instance_id = i.id
LEFT JOIN fleet_gpu g ON g.instance_id = i.id LEFT JOIN gpu_latest l ON l.gpu_id = g.id WHERE i.id = ANY(%s)
"""


@dataclass(slots=True)
class Outcome:
    """What became of one target. `code` "": it was read, and what is to be stored is stored; else a key of words.FAILURES."""

    job: Job
    code: str = ""
    detail: str = ""
    gives_gpus: bool = False
    gives_host: bool = False
    yields_to: str = ""
    memory: dict[str, Any] = field(default_factory=dict)
    was_read: bool = False
    # The host key that an SSH server showed, where it is not the one that was confirmed.
    offered: str = ""
    # When it was settled, in epoch seconds: the wait for the next reading counts from here, not from the end of the shard.
    at: float = field(default_factory=time.time)


@dataclass(slots=True)
class Machine:
    """A machine that the shard feeds. `present`: the UUIDs of the GPUs that it has now, as far as is known."""

    feeder: Feeder
    present: set[str] = field(default_factory=set)


class Shard:
    """Where the readings of a run go."""

    def __init__(self, pool: AsyncConnectionPool[Any], writer: Writer, client: httpx.AsyncClient, guard: Guard) -> None:
        self.pool, self.writer, self.client, self.guard = pool, writer, client, guard
        self.machines: dict[int, Machine] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._inventories = asyncio.Semaphore(INVENTORIES_AT_ONCE)

    async def load(self, instance_ids: Iterable[int]) -> None:
        """Raises UnavailableError."""
        async with reaching_database(), self.pool.connection() as connection:
            cursor = await connection.execute(_FEEDERS, [list(instance_ids)])
            rows = await cursor.fetchall()
        for instance_id, has_host, uuid, gpu_id, present, has_latest in rows:
            machine = self.machines.get(instance_id)
            if machine is None:
                feeder = Feeder(instance_id=instance_id, gpu_ids={}, has_host_latest=has_host)
                machine = self.machines[instance_id] = Machine(feeder)
            if uuid is not None:
                _add_gpu(machine, uuid, gpu_id, present=present, has_latest=has_latest)

    async def read(self, job: Job) -> Outcome:
        """Never raises: what goes wrong with one target is that target's outcome."""
        if job.problem or job.yields_to:
            return Outcome(job, code=job.problem, yields_to=job.yields_to)
        try:
            return await self._read(job)
        except FetchError as error:
            return Outcome(job, error.code, clean(error.detail), offered=error.offered)
        except (UnusableError, NotMetricsError) as error:
            return _unusable(job, error)
        except RefusalError as error:
            return Outcome(job, "not_stored", clean(error.detail))
        except Exception:
            # Whatever a hostile page can set off must not take the other targets of the shard along.
            logger.exception("Target %d could not be read", job.target_id)
            return Outcome(job, "bug")

    async def _read(self, job: Job) -> Outcome:
        async with self._slots:
            text = await self._fetch(job)
        at, dropped = time.time(), Counter[str]()
        longest = INTERVALS_UNTIL_SILENT * job.interval_seconds
        history = History(job.memory, at=at, longest_seconds=longest)
        page = parse_page(text, WANTED[job.kind])
        scraped = read_page(page, kind=job.kind, history=history, dropped=dropped)
        outcome = Outcome(job, memory=history.to_json(), was_read=True)
        outcome.gives_gpus, outcome.gives_host = scraped.gpus is not None, scraped.host is not None
        if scraped.problem is not None:
            outcome.code, outcome.detail = scraped.problem.code, clean(scraped.problem.detail)
        outcome.yields_to = leave_to_others(scraped, job)
        await self._store(job, scraped, at, dropped)
        return outcome

    async def _fetch(self, job: Job) -> str:
        if job.ssh is None:
            return await fetch_page(self.client, job.url, job.token)
        return await fetch_through_ssh(job.ssh, self.guard, job.url, job.token)

    async def _store(self, job: Job, scraped: Scraped, at: float, dropped: Counter[str]) -> None:
        if scraped.gpus is None and scraped.host is None:
            return
        sample = Sample(at=at, interval_seconds=job.interval_seconds, host=scraped.host, gpus=scraped.gpus)
        batch = Batch(v=1, sent_at=at, samples=[sample], events=scraped.events, inventory=scraped.inventory)
        await self.store_batch(job.instance_id, batch, dropped)

    async def store_batch(self, instance_id: int, batch: Batch, dropped: Counter[str]) -> None:
        """Readings of a machine that was loaded, as they would come from its agent. Raises RefusalError."""
        machine, at = self.machines[instance_id], time.time()
        feeder = machine.feeder
        await self._learn_gpus(machine, batch)
        rows = rows_of(
            batch,
            instance_id=instance_id,
            gpu_ids=feeder.gpu_ids,
            skew_seconds=0.0,
            received_at=at,
            dropped=dropped,
        )
        done = asyncio.get_running_loop().create_future()
        self.writer.offer(
            Prepared(agent=feeder, rows=rows, received_at=at, version="", boot_id="", dropped=dropped, done=done)
        )
        await done
        count_stored(rows, dropped, source="exporter")

    async def _learn_gpus(self, machine: Machine, batch: Batch) -> None:
        async with self._inventories:
            found = {row.uuid for row in batch.inventory or ()}
            if batch.inventory is not None and found != machine.present:
                await take_inventory(self.pool, machine.feeder, batch.inventory)
                machine.present = found
            await know_gpus(self.pool, machine.feeder, batch)


def _unusable(job: Job, error: UnusableError | NotMetricsError) -> Outcome:
    if isinstance(error, UnusableError):
        return Outcome(job, error.code, clean(error.detail))
    return Outcome(job, "not_metrics", clean(str(error)))


def leave_to_others(scraped: Scraped, job: Job) -> str:
    """Takes out what another exporter of the machine feeds: two samples of one thing would count twice."""
    left = False
    if scraped.gpus is not None and not job.takes_gpus:
        scraped.gpus, scraped.inventory, scraped.events, left = None, None, [], True
    if scraped.host is not None and not job.takes_host:
        scraped.host, left = None, True
    return "exporter" if left else ""


def _add_gpu(machine: Machine, uuid: str, gpu_id: int, *, present: bool, has_latest: bool) -> None:
    machine.feeder.gpu_ids[uuid] = gpu_id
    if present:
        machine.present.add(uuid)
    else:
        machine.feeder.removed.add(gpu_id)
    if has_latest:
        machine.feeder.has_latest.add(gpu_id)


async def read_targets(jobs: list[Job], *, guard: Guard) -> list[Outcome]:
    """In the order of `jobs`. Raises UnavailableError while the database is away: nothing was read then."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve"))
    async with open_shard(guard) as shard:
        await shard.load({job.instance_id for job in jobs})
        return await asyncio.gather(*(shard.read(job) for job in jobs))


@asynccontextmanager
async def open_shard(guard: Guard) -> AsyncIterator[Shard]:
    pool, publisher = make_pool(), Publisher()
    await pool.open()
    writer = Writer(pool, committed=publisher.committed)
    writing = asyncio.create_task(writer.run())
    try:
        async with make_client(guard, connections=AT_ONCE) as client:
            yield Shard(pool, writer, client, guard)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await publisher.flush()
        await publisher.close()
        await pool.close()
