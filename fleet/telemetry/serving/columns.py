"""The readings of a serving endpoint and how they add up over time. Pure: no Django, no clock."""

from __future__ import annotations

from fleet.telemetry.wire import ServingWire

COLUMNS: tuple[str, ...] = ServingWire.__struct_fields__[ServingWire.__struct_fields__.index("interval_seconds") :]
GAUGES = ("requests_running", "requests_waiting", "kv_cache_ratio")
LATENCIES = ("ttft", "tpot", "e2e")
# Of a request's life, so that an interval's own median and percentile are no part of a sum.
PERCENTILES = tuple(f"{latency}_seconds_{rank}" for latency in LATENCIES for rank in ("p50", "p95"))
# What an endpoint did in an interval: these add up.
SUMS = tuple(name for name in COLUMNS if name not in (*GAUGES, *PERCENTILES))
# What an interval shows at its worst.
HIGHEST = tuple(f"{latency}_seconds_p95" for latency in LATENCIES)
COUNTS = (
    "requests_finished",
    "requests_failed",
    "prompt_tokens",
    "generation_tokens",
    *(f"{name}_count" for name in LATENCIES),
)
