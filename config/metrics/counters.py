"""What processes counted (fleet/meters.py), as families."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from config.task_meters import BUCKETS
from fleet.meters import Count, read_counts, read_processes


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    description: str
    labels: tuple[str, ...]


# By the name under which they are counted.
COUNTERS = {
    "ingest_requests": Counter(
        "rackrent_ingest_requests", "Requests of agents, by what they were answered.", ("endpoint", "answer")
    ),
    "samples": Counter(
        "rackrent_samples_stored", "Readings that were committed: of GPUs, hosts, and events.", ("kind", "source")
    ),
    "dropped_values": Counter(
        "rackrent_values_dropped", "Values outside their physical range, and readings of impossible times.", ("source",)
    ),
    "live_dropped": Counter(
        "rackrent_live_dropped", "News of machines that open pages were not told but had to read.", ("reason",)
    ),
    "live_cut_off": Counter("rackrent_live_cut_off", "Browsers cut off because they did not read.", ()),
    "requests_turned_away": Counter(
        "rackrent_requests_turned_away", "Pages and calls of the API that waited too long for their turn.", ()
    ),
    "scrapes": Counter("rackrent_scrapes", "Readings of exporters, by how they ended.", ("result",)),
    "provider_readings": Counter(
        "rackrent_provider_readings",
        "Readings of what providers measure and announce beside their lists, by how they ended.",
        ("provider", "subject", "result"),
    ),
    "provider_polls": Counter(
        "rackrent_provider_polls", "Readings of providers' lists, by how they ended.", ("provider", "result")
    ),
    "task_runs": Counter("rackrent_task_runs", "Runs of background tasks, by how they ended.", ("task", "result")),
}
# Of each process; the page has their sums.
GAUGES = {
    "websocket_clients": ("rackrent_websocket_clients", "Browsers that hold a websocket open."),
    "ingest_queued_rows": ("rackrent_ingest_queued_rows", "Readings that wait to be committed."),
    "ingest_pool_connections": ("rackrent_ingest_pool_connections", "Database connections that ingest holds."),
    "ingest_pool_idle": ("rackrent_ingest_pool_idle", "Of these, those that do nothing."),
    "ingest_pool_waiting": ("rackrent_ingest_pool_waiting", "Requests that wait for such a connection."),
}
_BOUNDS = [*(str(float(bound)) for bound in BUCKETS), "+Inf"]


def families(now: float) -> Iterator[Metric]:
    """Raises RedisError."""
    counts = read_counts()
    for name, counter in COUNTERS.items():
        family = CounterMetricFamily(counter.name, counter.description, labels=counter.labels)
        for labels, value in _rows(counts, name):
            family.add_metric([labels[label] for label in counter.labels], value)
        yield family
    yield _task_seconds(counts)
    yield from _gauges(now)


def _rows(counts: Mapping[Count, float], name: str) -> Iterator[tuple[dict[str, str], float]]:
    for (counted, labels), value in sorted(counts.items()):
        if counted == name:
            yield dict(labels), value


def _task_seconds(counts: Mapping[Count, float]) -> Metric:
    runs: dict[str, dict[str, float]] = defaultdict(dict)
    for labels, value in _rows(counts, "task_seconds"):
        runs[labels["task"]][labels["le"]] = value
    sums = {labels["task"]: value for labels, value in _rows(counts, "task_seconds_sum")}
    family = HistogramMetricFamily("rackrent_task_seconds", "How long background tasks took.", labels=["task"])
    for task, buckets in runs.items():
        below, cumulative = 0.0, []
        for bound in _BOUNDS:
            below += buckets.get(bound, 0)
            cumulative.append((bound, below))
        family.add_metric([task], cumulative, sums.get(task, 0))
    return family


def _gauges(now: float) -> Iterator[Metric]:
    processes = list(read_processes(now=now))
    for name, (exposed, description) in GAUGES.items():
        known = [figures[name] for figures in processes if name in figures]
        # No process that could say is no zero.
        if known:
            yield GaugeMetricFamily(exposed, description, value=sum(known))
