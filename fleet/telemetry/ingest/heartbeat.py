"""POST /ingest/v1/heartbeat: the agent is there, also while its driver hangs."""

from __future__ import annotations

import time
from typing import Any

from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.sanitise import clean
from fleet.telemetry.wire import Heartbeat, NvmlStatus

_NOTE = """
UPDATE fleet_agent SET heartbeat_at = to_timestamp(%(at)s), version = %(version)s, boot_id = %(boot_id)s, nvml_state = %(state)s,
    nvml_detail = %(detail)s, nvml_since = to_timestamp(%(since)s), queued_batches = %(queued)s,
    oldest_queued_at = to_timestamp(%(oldest)s), lost_batches = %(lost)s, cpu_percent = %(cpu)s, memory_bytes = %(memory)s
WHERE id = %(id)s
"""


async def take_heartbeat(pool: AsyncConnectionPool[Any], agent: KnownAgent, beat: Heartbeat) -> str:
    """Returns the state of NVML as it was stored. Raises UnavailableError."""
    nvml = beat.nvml or NvmlStatus()
    state = clean(nvml.state, 16)
    note = {
        "id": agent.pk,
        "at": time.time(),
        "version": clean(beat.agent_version, 40),
        "boot_id": clean(beat.boot_id, 64),
        "state": state,
        "detail": clean(nvml.detail),
        "since": nvml.since,
        "queued": beat.queued_batches or 0,
        "oldest": beat.oldest_queued_at,
        "lost": beat.dropped_batches or 0,
        "cpu": beat.cpu_percent,
        "memory": beat.memory_bytes,
    }
    async with reaching_database(), pool.connection() as connection:
        await connection.execute(_NOTE, note)
    return state
