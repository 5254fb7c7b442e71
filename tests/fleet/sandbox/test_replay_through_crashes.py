"""A real trace through the real ingest: every sample of it in the database once, whatever is killed on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fleet.sandbox.readings import gpu_uuid
from fleet.traces import Trace, read_trace
from tests.fleet.sandbox.dashboard import ROOT, Dashboard, RunningReplay

TRACE = ROOT.parent / "shared" / "traces" / "genai_serving_gpu.csv.gz"
# UUID, moment, utilization, memory.
Stored = tuple[str, float, float | None, int | None]
STORED = """
SELECT uuid, extract(epoch FROM sampled_at)::float8, utilization_percent, memory_used_bytes
FROM gpu_sample JOIN fleet_gpu ON fleet_gpu.id = gpu_id
"""

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def trace_file() -> Path:
    if not TRACE.exists():
        pytest.skip(f"the recorded trace is not at {TRACE}")
    return TRACE


@pytest.fixture(scope="module")
def trace(trace_file: Path) -> Trace:
    return read_trace(trace_file)


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    with Dashboard(tmp_path) as running:
        running.add_team("acme")
        running.start_web()
        yield running


def rows(dashboard: Dashboard, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dashboard.postgres.url) as connection:
        return connection.execute(query.encode()).fetchall()


def stored(dashboard: Dashboard) -> Counter[Stored]:
    return Counter(rows(dashboard, STORED))


def expected(dashboard: Dashboard, trace: Trace) -> Counter[Stored]:
    """Every row of the file, once, at the moment that the replay's memory says it began from."""
    (memory,) = (dashboard.directory / "replay").glob("*.json")
    start = json.loads(memory.read_text())["start"]
    return Counter(
        (gpu_uuid(f"{trace.digest}/{pod}"), start + row.t, row.utilization_percent, row.memory_used_bytes)
        for pod, rows in trace.pods.items()
        for row in rows
    )


def test_every_sample_is_stored_once_though_everything_is_killed_midway(
    dashboard: Dashboard, trace_file: Path, trace: Trace
) -> None:
    # Slow enough that it cannot end before the last kill.
    replay = RunningReplay(dashboard, trace_file, "--team=acme", "--speed=2500")
    replay.until_sent(8_000)
    dashboard.kill_web()
    # Four lines are eight seconds: what waits in the queue meanwhile must not look as if its clock were behind.
    for _ in range(4):
        replay.until("waiting: ")
    dashboard.start_web()
    replay.until_sent(25_000)
    dashboard.kill_postgres()
    replay.until("waiting: ")
    dashboard.postgres.start()
    replay.until_sent(45_000)
    replay.kill()

    resumed = RunningReplay(dashboard, trace_file, "--team=acme")
    assert resumed.end() == 0, resumed.lines
    assert "75,294 of 75,294 samples are sent and acknowledged" in resumed.lines[-1]
    assert {row[0] for row in rows(dashboard, "SELECT interval_seconds FROM fleet_agent")} == {60}
    found, wanted = stored(dashboard), expected(dashboard, trace)
    assert sum(found.values()) == trace.samples == 75_294
    assert found == wanted
