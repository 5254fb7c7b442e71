"""POST /ingest/v1/heartbeat: the agent is there, also while its driver hangs."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.matching import SHARED
from fleet.telemetry.sanitise import clean
from fleet.telemetry.wire import Heartbeat, NvmlStatus

_encode = msgspec.json.Encoder().encode

# One statement, whatever is asked: the second part reads the few open rows of a partial index.
_NOTE = """
WITH noted AS (
UPDATE fleet_agent SET heartbeat_at = to_timestamp(%(at)s), version = %(version)s, boot_id = %(boot_id)s, nvml_state = %(state)s,
    nvml_detail = %(detail)s, nvml_since = to_timestamp(%(since)s), queued_batches = %(queued)s,
    oldest_queued_at = to_timestamp(%(oldest)s), lost_batches = %(lost)s, cpu_percent = %(cpu)s, memory_bytes = %(memory)s, actions = %(actions)s::jsonb,
    match_conflict = CASE WHEN %(shared)s THEN %(shared_code)s ELSE match_conflict END
WHERE id = %(id)s)
SELECT id, name, options, extract(epoch FROM expires_at)::float8 FROM agent_action
WHERE instance_id = %(instance)s AND state = 'asked' AND expires_at > to_timestamp(%(at)s) ORDER BY id LIMIT 4
"""


async def take_heartbeat(pool: AsyncConnectionPool[Any], agent: KnownAgent, beat: Heartbeat) -> tuple[str, list[Any]]:
    """Returns the state of NVML as it was stored, and the rows of the actions that are asked of this machine. Raises UnavailableError."""
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
        "instance": agent.instance_id,
        "actions": _encode(beat.actions or []).decode(),
    }
    async with reaching_database(), pool.connection() as connection:
        asked = await (await connection.execute(_NOTE, note)).fetchall()
    return state, asked


def returns_to_boot(agent: KnownAgent, boot_id: str) -> bool:
    """Whether a boot that had ended goes on: then two machines, one a copy of the other, report with one token."""
    if not boot_id or (agent.boots and agent.boots[-1] == boot_id):
        return False
    known = boot_id in agent.boots
    agent.boots.append(boot_id)
    return known
