"""The SQL that reads a fleet's recorded five minutes, machine by machine in the order of time: one statement however many machines there are."""

from __future__ import annotations

# A host or an endpoint has no row where it said nothing. Serving readings tell for how many seconds each stands.
# Highest of GPUs and of counts, 95th percentiles of what a host does, as the watch reads them. A GPU rests at another power while memory is held.
# A card that is cut into MIG instances tells nothing but power; its instances tell the rest.
# Of endpoints that are there together, the one that was ready last counts, and the one that was read least.
BUCKETS = """
SELECT * FROM (
WITH one AS (
    SELECT * FROM unnest(%(gpu_ids)s::int8[], %(machines)s::int8[], %(floors)s::float8[], %(held)s::float8[], %(cut)s::bool[])
        AS u(gpu_id, instance_id, floor_watts, held_watts, is_cut)
), gpu AS (
    SELECT one.instance_id, rolled.bucket_at, count(*) FILTER (WHERE NOT one.is_cut) AS gpus,
        count(*) FILTER (WHERE NOT one.is_cut AND rolled.utilization_percent_max IS NULL AND rolled.sm_activity_max IS NULL) AS unread,
        min(rolled.coverage) AS coverage, max(rolled.utilization_percent_max) AS utilization, max(rolled.sm_activity_max) AS sm,
        max(rolled.tensor_activity_max) AS tensor, max(rolled.dram_activity_max) AS dram,
        max(rolled.power_watts_max / nullif(CASE WHEN rolled.memory_used_bytes_max >= %(held_bytes)s THEN one.held_watts ELSE one.floor_watts END, 0))
            AS power_ratio
    FROM gpu_rollup_5min rolled JOIN one USING (gpu_id)
    WHERE rolled.gpu_id = ANY(%(gpu_ids)s) AND rolled.bucket_at >= %(since)s AND rolled.bucket_at < %(until)s
    GROUP BY one.instance_id, rolled.bucket_at
), serving AS (
    SELECT endpoint.instance_id, rolled.bucket_at, count(*) AS endpoints,
        min(coalesce(rolled.interval_seconds, 0)) / 300.0 AS coverage,
        CASE WHEN bool_and(rolled.requests_finished IS NOT NULL) THEN sum(rolled.requests_finished + coalesce(rolled.requests_failed, 0)) END AS requests,
        sum(coalesce(rolled.requests_running_total, 0) + coalesce(rolled.requests_waiting_total, 0)) AS waiting,
        max(endpoint.first_seen_at) AS ready_at
    FROM serving_rollup_5min rolled JOIN serving_latest endpoint ON endpoint.id = rolled.endpoint_id
    WHERE endpoint.instance_id = ANY(%(instance_ids)s) AND rolled.bucket_at >= %(since)s AND rolled.bucket_at < %(until)s
    GROUP BY endpoint.instance_id, rolled.bucket_at
)
SELECT gpu.instance_id, gpu.bucket_at, gpu.gpus, gpu.unread, gpu.coverage, gpu.utilization, gpu.sm, gpu.tensor, gpu.dram, gpu.power_ratio,
    host.coverage, host.cpu_percent_p95,
    host.disk_read_bytes_per_second_p95 + host.disk_write_bytes_per_second_p95,
    host.network_rx_bytes_per_second_p95 + host.network_tx_bytes_per_second_p95,
    host.ssh_sessions_max, host.jupyter_busy_kernels_max,
    coalesce(serving.endpoints, 0), serving.coverage, serving.requests, serving.waiting, serving.ready_at
FROM gpu
LEFT JOIN (SELECT * FROM host_rollup_5min WHERE instance_id = ANY(%(instance_ids)s) AND bucket_at >= %(since)s AND bucket_at < %(until)s) host
    USING (instance_id, bucket_at)
LEFT JOIN serving USING (instance_id, bucket_at)
) bucket ORDER BY instance_id, bucket_at
"""
