"""POST /ingest/v1/heartbeat: the agent is there, also while its driver hangs."""

from __future__ import annotations

import time
from typing import Any

from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.matching import SHARED
from fleet.telemetry.sanitise import clean
from fleet.telemetry.wire import Heartbeat, NvmlStatus

_NOTE = """
UPDATE fleet_agent SET heartbeat_at = to_timestamp(%(at)s), version = %(version)s, boot_id = %(boot_id)s, nvml_state = %(state)s,
    nvml_detail = %(detail)s, nvml_since = to_timestamp(%(since)s), queued_batches = %(queued)s,
    oldest_queued_at = to_timestamp(%(oldest)s), lost_batches = %(lost)s, cpu_percent = %(cpu)s, memory_bytes = %(memory)s,
    match_conflict = CASE WHEN %(shared)s THEN %(shared_code)s ELSE match_conflict END
WHERE id = %(id)s
"""


async def take_heartbeat(pool: AsyncConnectionPool[Any], agent: KnownAgent, beat: Heartbeat) -> str:
    """Returns the state of NVML as it was stored. Raises UnavailableError."""
    nvml = beat.nvml or NvmlStatus()
    state, boot_id = clean(nvml.state, 16), clean(beat.boot_id, 64)
    note = {
        "id": agent.pk,
        "at": time.time(),
        "version": clean(beat.agent_version, 40),
        "boot_id": boot_id,
        "shared": returns_to_boot(agent, boot_id),
        "shared_code": SHARED,
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


def returns_to_boot(agent: KnownAgent, boot_id: str) -> bool:
    """Whether a boot that had ended goes on: then two machines, one a copy of the other, report with one token."""
    if not boot_id or (agent.boots and agent.boots[-1] == boot_id):
        return False
    known = boot_id in agent.boots
    agent.boots.append(boot_id)
    return known
