"""The SQL of a group commit. Every statement takes one array per column and touches any number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from django.db import models

from fleet.states import DEFAULTS
from fleet.telemetry.ingest.arrays import BOOL, FLOAT8, INT4, INT8, TEXT, ArrayType, column
from fleet.telemetry.models import GpuReading, HostReading
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS, LATE_BUCKET_SECONDS

Columns = Sequence[tuple[str, ArrayType]]


def _types(model: type[models.Model], names: Sequence[str]) -> list[tuple[str, ArrayType]]:
    kinds: dict[type, ArrayType] = {
        models.FloatField: FLOAT8,
        models.BigIntegerField: INT8,
        models.IntegerField: INT4,
    }
    return [(name, kinds[type(model._meta.get_field(name))]) for name in names]


GPU_READING = _types(GpuReading, GPU_COLUMNS)
HOST_READING = _types(HostReading, HOST_COLUMNS)

GPU_SAMPLE: Columns = [("gpu_id", INT8), ("at", FLOAT8), ("state", INT4), ("interval_seconds", INT4), *GPU_READING]
HOST_SAMPLE: Columns = [
    ("instance_id", INT8),
    ("at", FLOAT8),
    ("devices", TEXT),
    ("interval_seconds", INT4),
    *HOST_READING,
]
_BOTH_TIMES: Columns = [("at", FLOAT8), ("received_at", FLOAT8)]
GPU_LATEST: Columns = [
    ("gpu_id", INT8),
    *_BOTH_TIMES,
    ("memory_total_bytes", INT8),
    ("lost", BOOL),
    ("health", TEXT),
    ("processes", TEXT),
    ("first_at", FLOAT8),
    ("busy_at", FLOAT8),
    ("idle_since", FLOAT8),
    ("continues", BOOL),
    *GPU_READING,
]
HOST_LATEST: Columns = [
    ("instance_id", INT8),
    *_BOTH_TIMES,
    ("memory_total_bytes", INT8),
    ("filesystem_total_bytes", INT8),
    ("cpu_limit_cores", FLOAT8),
    ("detail", TEXT),
    *HOST_READING,
]
LATE_WORK: Columns = [("gpu_id", INT8), ("at", FLOAT8), ("busy_at", FLOAT8)]
BACK: Columns = [("gpu_id", INT8), ("at", FLOAT8)]
LATE_BUCKET: Columns = [("instance_id", INT8), ("at", FLOAT8)]
EVENT: Columns = [
    ("instance_id", INT8),
    ("gpu_id", INT8),
    ("at", FLOAT8),
    ("kind", TEXT),
    ("code", INT4),
    ("detail", TEXT),
    ("received_at", FLOAT8),
]
AGENT_NOTE: Columns = [("id", INT8), ("at", FLOAT8), ("version", TEXT), ("boot_id", TEXT), ("dropped", TEXT)]


def parameters(columns: Columns, rows: Iterable[Sequence[Any]]) -> list[Any]:
    return [column(kind, values) for (_, kind), values in zip(columns, zip(*rows, strict=True), strict=True)]


async def run(
    connection: psycopg.AsyncConnection[Any], query: str, columns: Columns, rows: Sequence[Sequence[Any]]
) -> None:
    if rows:
        await connection.execute(query, parameters(columns, rows), prepare=True)


def unnest(columns: Columns) -> str:
    arrays = ", ".join(f"%b::{kind.name}[]" for _, kind in columns)
    return f"unnest({arrays}) AS u({', '.join(name for name, _ in columns)})"


def names(columns: Columns, prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name}" for name, _ in columns)


def _set(columns: Columns) -> str:
    return ", ".join(f"{name} = u.{name}" for name, _ in columns)


INSERT_GPU_SAMPLES = (
    f"INSERT INTO gpu_sample (gpu_id, sampled_at, state, interval_seconds, {names(GPU_READING)}) "
    f"SELECT u.gpu_id, to_timestamp(u.at), u.state::int2, u.interval_seconds::int2, {names(GPU_READING, 'u.')} FROM {unnest(GPU_SAMPLE)} "
    "ON CONFLICT DO NOTHING"
)
INSERT_HOST_SAMPLES = (
    f"INSERT INTO host_sample (instance_id, sampled_at, devices, interval_seconds, {names(HOST_READING)}) "
    f"SELECT u.instance_id, to_timestamp(u.at), u.devices::jsonb, u.interval_seconds::int2, {names(HOST_READING, 'u.')} "
    f"FROM {unnest(HOST_SAMPLE)} ON CONFLICT DO NOTHING"
)

# Ordered by key wherever rows are updated: two web processes then lock them in the same order.
INSERT_GPU_LATEST = (
    "INSERT INTO gpu_latest (gpu_id, sampled_at, received_at, memory_total_bytes, lost, health, processes, busy_at, idle_since, "
    f"{names(GPU_READING)}) SELECT u.gpu_id, to_timestamp(u.at), to_timestamp(u.received_at), u.memory_total_bytes, u.lost, "
    "u.health::jsonb, u.processes::jsonb, to_timestamp(u.busy_at), to_timestamp(u.idle_since), "
    f"{names(GPU_READING, 'u.')} FROM {unnest(GPU_LATEST)} ORDER BY u.gpu_id ON CONFLICT DO NOTHING"
)
_GAP = DEFAULTS.unbroken_gap.total_seconds()
UPDATE_GPU_LATEST = (
    "UPDATE gpu_latest t SET sampled_at = to_timestamp(u.at), received_at = to_timestamp(u.received_at), "
    "memory_total_bytes = coalesce(u.memory_total_bytes, t.memory_total_bytes), lost = u.lost, "
    "health = u.health::jsonb, processes = u.processes::jsonb, busy_at = greatest(t.busy_at, to_timestamp(u.busy_at)), "
    "idle_since = CASE WHEN u.idle_since IS NULL THEN NULL "
    f"WHEN u.continues AND t.idle_since IS NOT NULL AND u.first_at - extract(epoch FROM t.sampled_at) <= {_GAP} "
    "THEN t.idle_since ELSE to_timestamp(u.idle_since) END, "
    f"{_set(GPU_READING)} FROM {unnest(GPU_LATEST)} WHERE t.gpu_id = u.gpu_id AND t.sampled_at < to_timestamp(u.at)"
)
# A replayed batch is older than the latest row and must not move it back; but work that it shows counts, and breaks an idle time.
UPDATE_LATE_WORK = (
    "UPDATE gpu_latest t SET busy_at = to_timestamp(u.busy_at), "
    "idle_since = CASE WHEN t.idle_since <= to_timestamp(u.busy_at) THEN t.sampled_at ELSE t.idle_since END "
    f"FROM {unnest(LATE_WORK)} WHERE t.gpu_id = u.gpu_id AND t.sampled_at >= to_timestamp(u.at) "
    "AND to_timestamp(u.busy_at) > coalesce(t.busy_at, '-infinity')"
)
INSERT_HOST_LATEST = (
    "INSERT INTO host_latest (instance_id, sampled_at, received_at, memory_total_bytes, filesystem_total_bytes, "
    f"cpu_limit_cores, detail, {names(HOST_READING)}) SELECT u.instance_id, to_timestamp(u.at), "
    "to_timestamp(u.received_at), u.memory_total_bytes, u.filesystem_total_bytes, u.cpu_limit_cores, u.detail::jsonb, "
    f"{names(HOST_READING, 'u.')} FROM {unnest(HOST_LATEST)} ORDER BY u.instance_id ON CONFLICT DO NOTHING"
)
UPDATE_HOST_LATEST = (
    "UPDATE host_latest t SET sampled_at = to_timestamp(u.at), received_at = to_timestamp(u.received_at), "
    "memory_total_bytes = coalesce(u.memory_total_bytes, t.memory_total_bytes), "
    "filesystem_total_bytes = coalesce(u.filesystem_total_bytes, t.filesystem_total_bytes), "
    "cpu_limit_cores = u.cpu_limit_cores, detail = u.detail::jsonb, "
    f"{_set(HOST_READING)} FROM {unnest(HOST_LATEST)} WHERE t.instance_id = u.instance_id AND t.sampled_at < to_timestamp(u.at)"
)

# A batch that waited since before the removal does not bring a GPU back.
BRING_BACK = (
    f"UPDATE fleet_gpu t SET removed_at = NULL FROM {unnest(BACK)} "
    "WHERE t.id = u.gpu_id AND t.removed_at < to_timestamp(u.at)"
)
# No conflict to look for: two of these never wait for each other, nor for the job that takes them.
INSERT_LATE_BUCKETS = (
    "INSERT INTO rollup_late (instance_id, bucket_at, bucket_seconds) "
    f"SELECT u.instance_id, to_timestamp(u.at), {LATE_BUCKET_SECONDS} FROM {unnest(LATE_BUCKET)}"
)

INSERT_EVENTS = (
    "INSERT INTO fleet_machineevent (instance_id, gpu_id, at, kind, code, detail, received_at) "
    "SELECT u.instance_id, u.gpu_id, to_timestamp(u.at), u.kind, u.code, u.detail, to_timestamp(u.received_at) "
    f"FROM {unnest(EVENT)} ON CONFLICT DO NOTHING"
)

# Counts of dropped values add up; everything else is what the agent said last.
UPDATE_AGENTS = (
    "UPDATE fleet_agent t SET batch_at = greatest(t.batch_at, to_timestamp(u.at)), version = u.version, boot_id = u.boot_id, "
    "dropped_values = CASE WHEN u.dropped = '{}' THEN t.dropped_values ELSE ("
    "SELECT jsonb_object_agg(key, total) FROM (SELECT key, sum(value::bigint) AS total FROM ("
    "SELECT * FROM jsonb_each_text(t.dropped_values) UNION ALL SELECT * FROM jsonb_each_text(u.dropped::jsonb)"
    f") both_counts GROUP BY key) totals) END FROM {unnest(AGENT_NOTE)} WHERE t.id = u.id"
)
