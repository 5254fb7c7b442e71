"""A VictoriaMetrics of the run's own, in which ingest keeps its readings, and what it holds after it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.fleet.telemetry.store.servers import victoria_metrics

Keys = set[tuple[int, int]]


@contextmanager
def prometheus_store() -> Iterator[None]:
    """Named in the environment, as an operator does it."""
    with tempfile.TemporaryDirectory(prefix="rackrent-bench-") as directory, victoria_metrics(Path(directory)) as url:
        os.environ |= {
            "TELEMETRY_STORE": "prometheus",
            "TELEMETRY_WRITE_URL": f"{url}/api/v1/write",
            "TELEMETRY_READ_URL": url,
        }
        yield


def stored_keys() -> tuple[Keys, Keys]:
    """(GPU id, moment) and (instance id, moment) of every sample, in microseconds like the posts' keys, though it keeps milliseconds."""
    url = os.environ["TELEMETRY_READ_URL"]
    httpx.get(f"{url}/internal/force_flush").raise_for_status()
    return _keys(url, "rackrent_gpu_state", "gpu"), _keys(url, "rackrent_host_cpu_percent", "machine")


def _keys(url: str, name: str, label: str) -> Keys:
    found: Keys = set()
    with httpx.stream("GET", f"{url}/api/v1/export", params={"match[]": name}, timeout=120) as answer:
        for line in answer.iter_lines():
            series = json.loads(line)
            pk = int(series["metric"][label])
            found.update((pk, moment * 1000) for moment in series["timestamps"])
    return found


def in_milliseconds(keys: Keys) -> Keys:
    return {(pk, round(moment / 1000) * 1000) for pk, moment in keys}
