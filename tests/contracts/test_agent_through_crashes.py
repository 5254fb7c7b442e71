"""The real agent and a whole dashboard: what a crash of the web process, a lost GPU, a pause and a revocation do to its readings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.fakes.nvml.compiled import CompiledNvml
from tests.fleet.sandbox.dashboard import Dashboard
from tests.programs import needs

pytestmark = pytest.mark.timeout(300)

TOKEN = "rre_contract-token-0123456789"
ADD_TOKEN = """
INSERT INTO fleet_enrolmenttoken (team_id, token_hash, prefix, created_at, expires_at, max_uses, uses)
SELECT id, %s, 'rre_contra', now(), now() + interval '1 hour', 1, 0 FROM fleet_team
"""


class Site(Dashboard):
    """A dashboard that can be asked what it has stored."""

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.postgres.url, row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def change(self, statement: str, *values: Any) -> None:
        with psycopg.connect(self.postgres.url) as connection:
            connection.execute(statement, values)

    def count(self, table: str) -> int:
        return int(self.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as running:
        running.add_team("acme")
        running.change(ADD_TOKEN, hashlib.sha256(TOKEN.encode()).hexdigest())
        running.start_web()
        yield running


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> CompiledNvml:
    return CompiledNvml(tmp_path_factory.mktemp("nvml"), "h100x8")


@pytest.fixture(scope="module")
def agent(site: Site, nvml: CompiledNvml, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Installed as a person does it, then known to the dashboard; told to read every second, so that the test is short."""
    prefix = tmp_path_factory.mktemp("agent")
    line = f"{needs('curl')} -fsSL {site.url}/agent/install.sh | sh -s -- --token {TOKEN} --url {site.url} --prefix {prefix}"
    done = subprocess.run(["sh", "-c", line], env=nvml.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    site.change("UPDATE fleet_agent SET interval_seconds = 1, report_seconds = 1")
    try:
        yield site.rows("SELECT * FROM fleet_agent")[0]
    finally:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(Path(prefix, "state/agent.pid").read_text()), signal.SIGTERM)


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    limit = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < limit, "it did not come"
        time.sleep(0.2)
    return found


def test_the_machine_and_its_gpus_are_known(site: Site, agent: dict[str, Any], nvml: CompiledNvml) -> None:
    until(lambda: site.count("gpu_latest") == 8)
    gpus = site.rows("SELECT uuid, name, removed_at FROM fleet_gpu ORDER BY index")
    assert [gpu["uuid"] for gpu in gpus] == nvml.uuids
    assert all("H100" in gpu["name"] and gpu["removed_at"] is None for gpu in gpus)
    (machine,) = site.rows("SELECT * FROM fleet_instance")
    assert (machine["gpu_count"], machine["id"]) == (8, agent["instance_id"])
    assert machine["vcpus"] == os.cpu_count()
    (environment,) = site.rows("SELECT data FROM fleet_environmentreport ORDER BY reported_at DESC LIMIT 1")
    assert environment["data"]["kernel"] == os.uname().release


def test_readings_arrive_and_nothing_of_them_is_dropped(site: Site, agent: dict[str, Any]) -> None:
    until(lambda: site.count("gpu_sample") >= 24 and site.count("host_sample") >= 3)
    latest = site.rows("SELECT * FROM gpu_latest")[0]
    assert latest["memory_total_bytes"] > 80e9
    assert latest["power_watts"] > 0
    assert latest["temperature_celsius"] > 0
    host = site.rows("SELECT * FROM host_latest")[0]
    assert host["memory_used_bytes"] > 0
    assert host["detail"]["interfaces"]
    until(lambda: site.rows("SELECT 1 FROM fleet_agent WHERE nvml_state = 'ok'"))
    (said,) = site.rows("SELECT * FROM fleet_agent")
    assert said["dropped_values"] == {}
    assert said["version"]


def test_a_lost_gpu_is_an_event_and_a_state(site: Site, agent: dict[str, Any], nvml: CompiledNvml) -> None:
    nvml.control(f"15 nvmlDeviceGetUtilizationRates {nvml.uuids[0]}")
    until(
        lambda: site.rows(
            "SELECT 1 FROM gpu_latest JOIN fleet_gpu g ON g.id = gpu_id WHERE uuid = %s AND lost", nvml.uuids[0]
        )
    )
    until(lambda: site.rows("SELECT 1 FROM fleet_machineevent WHERE kind = 'gpu_lost'"))
    nvml.control()


def test_nothing_is_lost_or_doubled_by_a_crash_of_the_web_process(site: Site, agent: dict[str, Any]) -> None:
    before = until(lambda: site.count("host_sample") > 3 and site.count("host_sample"))
    site.kill_web()
    time.sleep(4)
    site.start_web()
    until(lambda: site.count("host_sample") >= before + 12)
    gaps = site.rows(
        "SELECT extract(epoch FROM sampled_at - lag(sampled_at) OVER (ORDER BY sampled_at))::float8 AS gap FROM host_sample"
        " WHERE sampled_at > now() - interval '20 seconds'"
    )
    measured = [row["gap"] for row in gaps if row["gap"] is not None]
    assert measured
    # An interval is one second; a lost batch would show as a hole of the four seconds that the web process was away.
    assert max(measured) < 3.0


def test_the_agent_obeys_a_pause(site: Site, agent: dict[str, Any]) -> None:
    site.change("UPDATE fleet_agent SET paused = true")
    until(lambda: site.rows("SELECT 1 FROM fleet_agent WHERE nvml_state = 'paused'"))
    site.change("UPDATE fleet_agent SET paused = false")
    until(lambda: site.rows("SELECT 1 FROM fleet_agent WHERE nvml_state = 'ok'"))


def test_a_revoked_agent_is_refused_and_keeps_its_queue(site: Site, agent: dict[str, Any]) -> None:
    site.change("UPDATE fleet_agent SET revoked_at = now()")
    time.sleep(5)
    stored = site.count("host_sample")
    time.sleep(2)
    assert site.count("host_sample") == stored
