"""POST /ingest/v1/samples."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.group import Prepared
from fleet.telemetry.ingest.registry import prepare_machine
from fleet.telemetry.ingest.tally import count_stored
from fleet.telemetry.ingest.writer import Writer
from fleet.telemetry.readings import rows_of
from fleet.telemetry.sanitise import Decoded, clean
from fleet.telemetry.serving.write import know_endpoints
from fleet.telemetry.wire import Batch

_encode = msgspec.json.Encoder().encode


async def take_batch(
    pool: AsyncConnectionPool[Any], writer: Writer, agent: KnownAgent, decoded: Decoded[Batch], *, received_at: float
) -> bytes:
    """Store a batch and return the first members of the answer, once it is committed. Raises RefusalError."""
    batch, dropped = decoded.value, decoded.dropped
    await prepare_machine(pool, agent, batch, received_at=received_at)
    await know_endpoints(pool, agent, batch)
    rows = rows_of(
        batch,
        instance_id=agent.instance_id,
        gpu_ids=agent.gpu_ids,
        skew_seconds=agent.skew_seconds,
        received_at=received_at,
        dropped=dropped,
        endpoints=agent.endpoints,
    )
    prepared = Prepared(
        agent=agent,
        rows=rows,
        received_at=time.time(),
        version=clean(batch.agent_version, 40),
        boot_id=clean(batch.boot_id, 64),
        dropped=dropped,
        done=asyncio.get_running_loop().create_future(),
    )
    writer.offer(prepared)
    await prepared.done
    count_stored(rows, dropped, source="agent")
    counts = (len(rows.gpus), len(rows.hosts), len(rows.events))
    return b'"accepted":{"gpu":%d,"host":%d,"events":%d},"dropped":%b,' % (*counts, _encode(dropped))
