"""Which GPUs a machine has, what runs on it, how far its clock is off: rare writes, made before a batch is queued."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from psycopg_pool import AsyncConnectionPool

from fleet.providers.gpus import canonical
from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.database import reaching_database
from fleet.telemetry.ingest.errors import InvalidBodyError
from fleet.telemetry.ingest.feeder import Feeder
from fleet.telemetry.readings import agreed_skew
from fleet.telemetry.sanitise import clean, clean_map
from fleet.telemetry.wire import Batch, Enrolment, Environment, InventoryRow

# MIG instances get new UUIDs whenever a card is cut anew; more than this over a machine's life is not hardware.
MAX_GPUS_EVER = 2_048

Pool = AsyncConnectionPool[Any]
_encode = msgspec.json.Encoder(order="deterministic").encode

_ADD_SEEN = """
INSERT INTO fleet_gpu (instance_id, uuid, index, name, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT %s, uuid, 0, '', '', '', '', now() FROM unnest(%s::text[]) AS u(uuid)
ON CONFLICT (instance_id, uuid) DO UPDATE SET uuid = excluded.uuid RETURNING uuid, id
"""
_TAKE_INVENTORY = """
INSERT INTO fleet_gpu (instance_id, uuid, index, name, memory_total_bytes, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT %s, uuid, index, name, memory, bus, parent, profile, now()
FROM unnest(%s::text[], %s::int[], %s::text[], %s::int8[], %s::text[], %s::text[], %s::text[])
    AS u(uuid, index, name, memory, bus, parent, profile)
ON CONFLICT (instance_id, uuid) DO UPDATE SET index = excluded.index, name = excluded.name,
    memory_total_bytes = coalesce(excluded.memory_total_bytes, fleet_gpu.memory_total_bytes), pci_bus_id = excluded.pci_bus_id,
    mig_parent_uuid = excluded.mig_parent_uuid, mig_profile = excluded.mig_profile, removed_at = NULL
RETURNING uuid, id
"""
_REMOVE_OTHERS = "UPDATE fleet_gpu SET removed_at = now() WHERE instance_id = %s AND removed_at IS NULL AND NOT uuid = ANY(%s) RETURNING id"
# What a provider or a person said stays; the agent only fills what nobody knows.
_FILL_GPU_FACTS = """
UPDATE fleet_instance SET gpu_count = coalesce(gpu_count, %(count)s),
    gpu_model = CASE WHEN gpu_model = '' THEN %(model)s ELSE gpu_model END,
    gpu_memory_mib = coalesce(gpu_memory_mib, %(memory)s)
WHERE id = %(instance)s AND (gpu_count IS NULL OR gpu_model = '' OR gpu_memory_mib IS NULL)
"""
_FILL_HOST_FACTS = """
UPDATE fleet_instance SET vcpus = coalesce(vcpus, %s), ram_mib = coalesce(ram_mib, %s)
WHERE id = %s AND (vcpus IS NULL OR ram_mib IS NULL)
"""
_ADD_ENVIRONMENT = """
INSERT INTO fleet_environmentreport (instance_id, reported_at, digest, data)
SELECT %(instance)s, to_timestamp(%(at)s), %(digest)s::text, %(data)s::jsonb WHERE %(digest)s::text IS DISTINCT FROM (
    SELECT digest FROM fleet_environmentreport WHERE instance_id = %(instance)s ORDER BY reported_at DESC, id DESC LIMIT 1)
"""
_AGREE_SKEW = """
UPDATE fleet_agent SET clock_skew_seconds = %s, clock_jumped_at = now() WHERE id = %s AND coalesce(clock_skew_seconds, 0) = %s
"""
_READ_SKEW = "SELECT coalesce(clock_skew_seconds, 0) FROM fleet_agent WHERE id = %s"


async def prepare_machine(pool: Pool, agent: KnownAgent, batch: Batch, *, received_at: float) -> None:
    """Everything a batch says beside its samples, committed before they are queued; afterwards `agent` knows every GPU in it."""
    await _agree_on_skew(pool, agent, received_at - batch.sent_at)
    if batch.inventory is not None:
        await take_inventory(pool, agent, batch.inventory)
    if batch.environment is not None:
        await _take_environment(pool, agent, batch.environment, received_at)
    await know_gpus(pool, agent, batch)


async def know_gpus(pool: Pool, feeder: Feeder, batch: Batch) -> None:
    """Afterwards `feeder` knows every GPU that the batch names."""
    unknown = _unknown_uuids(feeder, batch)
    if unknown:
        await _add_seen(pool, feeder, unknown)


async def take_facts(pool: Pool, agent: KnownAgent, enrolment: Enrolment) -> None:
    """What a machine says of its hardware and software when it enrols, so that its page has it before the first sample."""
    if enrolment.gpus is not None:
        await take_inventory(pool, agent, enrolment.gpus)
    if enrolment.host is not None:
        await _take_environment(pool, agent, enrolment.host, time.time())


async def _agree_on_skew(pool: Pool, agent: KnownAgent, measured: float) -> None:
    """Compare and set, so that two web processes never store one reading under two moments."""
    agent.measured_skews.append(measured)
    wanted = agreed_skew(measured=agent.measured_skews, applied=agent.skew_seconds)
    if wanted == agent.skew_seconds:
        return
    async with reaching_database(), pool.connection() as connection:
        cursor = await connection.execute(_AGREE_SKEW, [wanted, agent.pk, agent.skew_seconds])
        if cursor.rowcount == 1:
            agent.skew_seconds = wanted
            return
        row = await (await connection.execute(_READ_SKEW, [agent.pk])).fetchone()
        agent.skew_seconds = row[0] if row else wanted


def _unknown_uuids(agent: Feeder, batch: Batch) -> list[str]:
    known = agent.gpu_ids
    found = {gpu.uuid for sample in batch.samples or () for gpu in sample.gpus or () if gpu.uuid not in known}
    found |= {event.gpu for event in batch.events or () if event.gpu and event.gpu not in known}
    return sorted(found)


async def _add_seen(pool: Pool, agent: Feeder, uuids: list[str]) -> None:
    """GPUs that a sample names before any inventory did."""
    _check_uuids(agent, uuids)
    async with agent.gpu_lock, reaching_database(), pool.connection() as connection:
        rows = await (await connection.execute(_ADD_SEEN, [agent.instance_id, uuids])).fetchall()
    agent.gpu_ids.update(rows)


def _check_uuids(agent: Feeder, uuids: Iterable[str]) -> None:
    new = {uuid for uuid in uuids if uuid not in agent.gpu_ids}
    for uuid in new:
        if clean(uuid) != uuid or not uuid.isascii():
            raise InvalidBodyError("A GPU's uuid is printable ASCII.", field="uuid")
    if len(agent.gpu_ids) + len(new) > MAX_GPUS_EVER:
        raise InvalidBodyError(f"More than {MAX_GPUS_EVER} different GPUs on one machine.", field="uuid")


async def take_inventory(pool: Pool, agent: Feeder, inventory: list[InventoryRow]) -> None:
    """What the machine has now: others are marked as removed, their history stays."""
    rows = list({row.uuid: row for row in inventory}.values())
    uuids = [row.uuid for row in rows]
    _check_uuids(agent, uuids)
    async with agent.gpu_lock, reaching_database(), pool.connection() as connection, connection.transaction():
        cursor = await connection.execute(_TAKE_INVENTORY, [agent.instance_id, *_inventory_columns(rows)])
        ids = await cursor.fetchall()
        removed = await (await connection.execute(_REMOVE_OTHERS, [agent.instance_id, uuids])).fetchall()
        if facts := gpu_facts(rows):
            await connection.execute(_FILL_GPU_FACTS, {**facts, "instance": agent.instance_id})
    agent.gpu_ids.update(ids)
    agent.removed = (agent.removed | {gpu_id for (gpu_id,) in removed}) - {gpu_id for _, gpu_id in ids}


def _inventory_columns(rows: list[InventoryRow]) -> list[list[Any]]:
    return [
        [row.uuid for row in rows],
        [row.index for row in rows],
        [clean(row.name, 120) for row in rows],
        [row.memory_total_bytes for row in rows],
        [clean(row.pci_bus_id, 32) for row in rows],
        [clean(row.mig_parent, 96) for row in rows],
        [clean(row.mig_profile, 40) for row in rows],
    ]


def gpu_facts(rows: list[InventoryRow]) -> dict[str, Any]:
    """Count, model and memory of the whole cards of an inventory; empty for a machine without any."""
    cards = [row for row in rows if not row.mig_parent]
    if not cards:
        return {}
    total = cards[0].memory_total_bytes
    memory_mib = total >> 20 if total else None
    model = canonical(clean(cards[0].name, 60), memory_mib=memory_mib)
    return {"count": len(cards), "model": model, "memory": memory_mib}


def environment_data(environment: Environment) -> dict[str, Any]:
    """The report as stored: what was said, with every string cleaned and cut."""
    data: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(environment).items():
        if isinstance(value, str):
            data[name] = clean(value)
        elif isinstance(value, dict):
            data[name] = clean_map(value)
        else:
            data[name] = value
    return data


async def _take_environment(pool: Pool, agent: KnownAgent, environment: Environment, received_at: float) -> None:
    data = _encode(environment_data(environment))
    report = {
        "instance": agent.instance_id,
        "at": received_at,
        "digest": hashlib.sha256(data).hexdigest(),
        "data": data.decode(),
    }
    memory = environment.memory_total_bytes
    async with reaching_database(), pool.connection() as connection, connection.transaction():
        await connection.execute(_ADD_ENVIRONMENT, report)
        facts = [environment.cpu_count, memory >> 20 if memory else None, agent.instance_id]
        await connection.execute(_FILL_HOST_FACTS, facts)
