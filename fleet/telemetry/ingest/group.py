"""Batches that are committed together, merged into as few statements as there are tables."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg

from fleet.telemetry.ingest import statements as sql
from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.feeder import Feeder
from fleet.telemetry.readings import (
    Rows,
    Trail,
    activity_of,
    detail_json,
    gpu_values,
    health_json,
    host_values,
    late_buckets,
    processes_json,
)
from fleet.telemetry.serving.write import write_serving
from fleet.telemetry.store.base import Samples, SampleWriter
from fleet.telemetry.wire import HostWire

# The row of an agent says when its last batch came; that need not be exact to the second.
NOTE_SECONDS = 10.0
# A reading this old when it arrives was replayed.
REPLAYED_SECONDS = 30.0
# The name, among those of fields, under which values are counted that the store does not take any more.
REFUSED_BY_STORE = "refused_by_store"

_encode = msgspec.json.Encoder().encode
Connection = psycopg.AsyncConnection[Any]


@dataclass(slots=True, eq=False)
class Prepared:
    """One accepted batch on its way to the database. `done` is resolved after the commit."""

    agent: Feeder
    rows: Rows
    received_at: float
    version: str
    boot_id: str
    dropped: Counter[str]
    done: asyncio.Future[None]


@dataclass(slots=True)
class Group:
    batches: list[Prepared]
    trails: dict[int, Trail] = field(default_factory=dict)
    hosts: dict[int, tuple[float, HostWire]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for batch in self.batches:
            self._merge(batch.agent.instance_id, batch.rows)

    def _merge(self, instance_id: int, rows: Rows) -> None:
        for gpu_id, trail in rows.trails.items():
            known = self.trails.get(gpu_id)
            if known is None:
                # A copy of the marks: a group that fails is merged again, batch by batch.
                self.trails[gpu_id] = Trail(trail.at, trail.newest, list(trail.marks))
            else:
                known.join(trail)
        newest = rows.newest_host
        if newest and (instance_id not in self.hosts or newest[0] > self.hosts[instance_id][0]):
            self.hosts[instance_id] = newest

    def samples(self, now: float) -> Samples:
        machines = {row[0]: batch.agent.instance_id for batch in self.batches for row in batch.rows.gpus}
        return Samples(self._all("gpus"), self._all("hosts"), self._late_buckets(now), machines)

    def note_refused(self, values: Counter[int]) -> None:
        """What the store refused of a machine, by machine id, is told to its agent and counted as dropped."""
        for batch in self.batches:
            if refused := values.pop(batch.agent.instance_id, 0):
                batch.dropped[REFUSED_BY_STORE] += refused

    async def write(self, connection: Connection, writer: SampleWriter, samples: Samples, *, now: float) -> None:
        """All of it in one transaction."""
        async with connection.transaction():
            await writer.insert(connection, samples)
            await self._write_gpu_latest(connection, now)
            await sql.run(connection, sql.BRING_BACK, sql.BACK, self._back())
            await self._write_host_latest(connection, now)
            await write_serving(connection, (batch.rows for batch in self.batches), now=now)
            await sql.run(connection, sql.INSERT_EVENTS, sql.EVENT, [(*row, now) for row in self._all("events")])
            await sql.run(connection, sql.UPDATE_AGENTS, sql.AGENT_NOTE, list(self._notes(now)))

    def settle(self, now: float) -> None:
        """After the commit: remember which rows exist now, so that the next group need not try to insert them."""
        for batch in self.batches:
            agent = batch.agent
            agent.has_latest.update(batch.rows.trails)
            agent.has_host_latest |= batch.rows.newest_host is not None
            if isinstance(agent, KnownAgent) and _needs_note(agent, batch, now):
                agent.noted_at = now

    def _all(self, name: str) -> list[tuple[Any, ...]]:
        return [row for batch in self.batches for row in getattr(batch.rows, name)]

    def _late_buckets(self, now: float) -> list[tuple[int, float]]:
        found = {
            (batch.agent.instance_id, bucket)
            for batch in self.batches
            for bucket in late_buckets(batch.rows.moments, now=now)
        }
        return sorted(found)

    async def _write_gpu_latest(self, connection: Connection, now: float) -> None:
        rows = [_gpu_latest_row(gpu_id, trail, now) for gpu_id, trail in sorted(self.trails.items())]
        known = {gpu_id for batch in self.batches for gpu_id in batch.agent.has_latest}
        new = [row for row in rows if row[0] not in known]
        await sql.run(connection, sql.INSERT_GPU_LATEST, sql.GPU_LATEST, new)
        await sql.run(connection, sql.UPDATE_GPU_LATEST, sql.GPU_LATEST, rows)
        late = [
            (gpu_id, trail.at, busy_at)
            for gpu_id, trail in sorted(self.trails.items())
            if now - trail.at > REPLAYED_SECONDS and (busy_at := activity_of(trail.marks).busy_at) is not None
        ]
        await sql.run(connection, sql.UPDATE_LATE_WORK, sql.LATE_WORK, late)

    def _back(self) -> list[tuple[int, float]]:
        """GPUs that report though the inventory had stopped naming them. A lost one does not report."""
        removed = {gpu_id for batch in self.batches for gpu_id in batch.agent.removed}
        trails = [(gpu_id, self.trails[gpu_id]) for gpu_id in sorted(removed & self.trails.keys())]
        return [(gpu_id, trail.at) for gpu_id, trail in trails if trail.newest.state != "lost"]

    async def _write_host_latest(self, connection: Connection, now: float) -> None:
        known = {batch.agent.instance_id for batch in self.batches if batch.agent.has_host_latest}
        rows = [_host_latest_row(pk, at, host, now) for pk, (at, host) in sorted(self.hosts.items())]
        new = [row for row in rows if row[0] not in known]
        await sql.run(connection, sql.INSERT_HOST_LATEST, sql.HOST_LATEST, new)
        await sql.run(connection, sql.UPDATE_HOST_LATEST, sql.HOST_LATEST, rows)

    def _notes(self, now: float) -> Iterator[tuple[Any, ...]]:
        """One row per agent: an UPDATE takes only one of several for the same target."""
        by_agent: dict[int, list[Prepared]] = {}
        for batch in self.batches:
            agent = batch.agent
            if isinstance(agent, KnownAgent) and _needs_note(agent, batch, now):
                by_agent.setdefault(agent.pk, []).append(batch)
        for pk, batches in sorted(by_agent.items()):
            newest = max(batches, key=lambda batch: batch.received_at)
            dropped = sum((batch.dropped for batch in batches), Counter[str]())
            yield pk, newest.received_at, newest.version, newest.boot_id, _encode(dropped)


def _needs_note(agent: KnownAgent, batch: Prepared, now: float) -> bool:
    return bool(batch.dropped) or now - agent.noted_at >= NOTE_SECONDS


def _gpu_latest_row(gpu_id: int, trail: Trail, now: float) -> tuple[Any, ...]:
    newest, activity = trail.newest, activity_of(trail.marks)
    return (
        gpu_id,
        trail.at,
        now,
        newest.memory_total_bytes,
        newest.state == "lost",
        health_json(newest),
        processes_json(newest),
        activity.first_at,
        activity.busy_at,
        activity.idle_since,
        activity.continues,
        *gpu_values(newest),
    )


def _host_latest_row(instance_id: int, at: float, host: HostWire, now: float) -> tuple[Any, ...]:
    totals = (host.memory_total_bytes, host.filesystem_total_bytes, host.cpu_limit_cores)
    return (instance_id, at, now, *totals, detail_json(host), *host_values(host))
