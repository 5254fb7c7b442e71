"""The write path of serving endpoints: rare look-ups before a batch is queued, and the group's statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.ingest.feeder import Feeder
from fleet.telemetry.ingest.statements import run
from fleet.telemetry.readings import Rows
from fleet.telemetry.serving import statements as sql
from fleet.telemetry.serving.readings import Endpoint, endpoints_of, newest
from fleet.telemetry.wire import Batch

# A machine that names new models for ever is no machine; what it names beyond this is counted as dropped.
MAX_ENDPOINTS = 256


async def know_endpoints(pool: AsyncConnectionPool[Any], feeder: Feeder, batch: Batch) -> None:
    """Afterwards `feeder` knows every endpoint that the batch names, as far as a machine may have them. Raises UnavailableError."""
    named = endpoints_of(batch)
    if named <= feeder.endpoints.keys() or len(feeder.endpoints) >= MAX_ENDPOINTS:
        return
    async with feeder.gpu_lock, reaching_database(), pool.connection() as connection:
        known = await (await connection.execute(sql.KNOWN_ENDPOINTS, [feeder.instance_id])).fetchall()
        feeder.endpoints = {(engine, model, port): pk for engine, model, port, pk in known}
        missing = sorted(named - feeder.endpoints.keys())[: MAX_ENDPOINTS - len(feeder.endpoints)]
        if missing:
            feeder.endpoints |= await _add(connection, feeder.instance_id, missing)


async def _add(
    connection: psycopg.AsyncConnection[Any], instance_id: int, missing: list[Endpoint]
) -> dict[Endpoint, int]:
    columns = [list(column) for column in zip(*missing, strict=True)]
    rows = await (await connection.execute(sql.ADD_ENDPOINTS, [instance_id, *columns])).fetchall()
    return {(engine, model, port): pk for engine, model, port, pk in rows}


async def write_serving(connection: psycopg.AsyncConnection[Any], groups: Iterable[Rows], *, now: float) -> None:
    """Part of a group's transaction."""
    rows, requested = [], dict[int, float]()
    for group in groups:
        rows += group.serving
        for pk, at in group.requested.items():
            requested[pk] = max(at, requested.get(pk, at))
    await run(connection, sql.INSERT_SAMPLES, sql.SAMPLE, rows)
    await run(connection, sql.UPDATE_LATEST, sql.LATEST, newest(rows, received_at=now))
    await run(connection, sql.UPDATE_REQUESTED, sql.REQUESTED, sorted(requested.items()))
