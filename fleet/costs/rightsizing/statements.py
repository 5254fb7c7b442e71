"""The SQL that reads what was measured of all of a team's machines at once. Parameters: instance_ids, since, until."""

from __future__ import annotations

# Hours that touch work count as whole ones: GPUs that took turns within an hour count as at the same time, never the other way round.
# Utilization is of the GPUs that ever worked: those that did nothing would make the others look idle.
GPUS = """
WITH reading AS (
    SELECT gpu.instance_id, gpu.id AS gpu_id, rolled.bucket_at, rolled.coverage, rolled.stopped_seconds,
        rolled.working_seconds + rolled.starved_seconds + rolled.stalled_seconds AS work,
        rolled.held_seconds AS held,
        rolled.working_seconds + rolled.starved_seconds + rolled.stalled_seconds + rolled.held_seconds + rolled.free_seconds AS known,
        rolled.memory_used_bytes_max AS memory, rolled.utilization_percent_avg / 100 AS utilization,
        rolled.sm_activity_avg AS sm_activity
    FROM gpu_rollup_1h rolled JOIN fleet_gpu gpu ON gpu.id = rolled.gpu_id
    WHERE gpu.instance_id = ANY(%(instance_ids)s) AND rolled.bucket_at >= %(since)s AND rolled.bucket_at < %(until)s
), hour AS (
    SELECT instance_id, bucket_at, count(*) FILTER (WHERE work > 0) AS working, count(*) FILTER (WHERE work > 0 OR held > 0) AS holding,
        max(memory) AS memory, sum(known) AS known, sum(3600 - stopped_seconds) AS running, max(3600 - stopped_seconds) AS on_seconds
    FROM reading GROUP BY instance_id, bucket_at
), machine AS (
    SELECT instance_id, count(*) * 3600 AS span_seconds, sum(on_seconds) AS running_seconds, sum(known) / nullif(sum(running), 0) AS coverage,
        max(bucket_at) FILTER (WHERE known > 0) AS newest_at, max(memory) AS peak_memory,
        percentile_cont(0.999) WITHIN GROUP (ORDER BY memory) AS p999_memory, max(working) AS working_at_once, max(holding) AS holding_at_once
    FROM hour GROUP BY instance_id
), load AS (
    SELECT instance_id, avg(utilization) AS mean,
        percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY utilization) AS quantiles,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY sm_activity) AS sm_activity
    FROM reading WHERE gpu_id IN (SELECT gpu_id FROM reading WHERE work > 0) AND coverage > 0 GROUP BY instance_id
)
SELECT instance_id, span_seconds, running_seconds, coverage, newest_at, peak_memory, p999_memory, working_at_once, holding_at_once,
    mean, quantiles[1], quantiles[2], sm_activity
FROM machine LEFT JOIN load USING (instance_id)
"""
# A CPU is at its limit for a moment in every start: of each hour what it passed in one of twenty readings, of those the highest.
HOSTS = """
SELECT instance_id, max(memory_used_bytes_max), max(cpu_percent_p95) / 100, max(filesystem_used_bytes_max),
    max(greatest(network_rx_bytes_per_second_p95, network_tx_bytes_per_second_p95))
FROM host_rollup_1h WHERE instance_id = ANY(%(instance_ids)s) AND bucket_at >= %(since)s AND bucket_at < %(until)s
GROUP BY instance_id
"""
# What a machine has, as the agent saw it.
CARDS = """
SELECT instance_id, min(memory_total_bytes), bool_or(mig_profile <> '')
FROM fleet_gpu WHERE instance_id = ANY(%(instance_ids)s) AND removed_at IS NULL GROUP BY instance_id
"""
