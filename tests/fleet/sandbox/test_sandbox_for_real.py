"""`manage.py up` with its sandbox: the real poller lists the machines, and the agents' real enrolments find them, one to one."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from config.embedded import EmbeddedPostgres
from tests.config.test_up import PASSWORD, Run

pytestmark = pytest.mark.timeout(400)

MACHINES = """
SELECT i.external_id, i.managed, p.slug, a.provider_ids ->> 'sandbox_instance_id', a.match_conflict, a.batch_at IS NOT NULL, c.kind
FROM fleet_instance i JOIN fleet_team t ON t.id = i.team_id AND t.slug = 'sandbox' JOIN fleet_provideraccount c ON c.id = i.account_id
LEFT JOIN fleet_project p ON p.id = i.project_id LEFT JOIN fleet_agent a ON a.instance_id = i.id WHERE i.gone_at IS NULL
"""
# Two are stopped, one is being provisioned.
OFF_AT_FIRST = {"sb-e5a810", "sb-e5a811", "sb-d1f300"}
OTHERS = "SELECT count(*) FROM fleet_instance i JOIN fleet_team t ON t.id = i.team_id WHERE NOT t.is_sandbox"


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(EmbeddedPostgres(home / "postgres").url) as connection:
        return connection.execute(query.encode()).fetchall()


def reporting(home: Path) -> int:
    return sum(row[5] or 0 for row in rows(home, MACHINES))


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    # As root, the servers' account has to pass it.
    directory = Path(tempfile.mkdtemp(prefix="rackrent-sandbox-", dir="/var/tmp"))
    directory.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        # Ours too, so that we find the same sockets.
        patch.setenv("RACKRENT_DATA_DIR", str(directory))
        yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def run(home: Path) -> Iterator[Run]:
    with socket.create_server(("127.0.0.1", 0)) as web, socket.create_server(("127.0.0.1", 0)) as provider:
        ports = web.getsockname()[1], provider.getsockname()[1]
    up = Run(home, ports[0], SANDBOX="1", SANDBOX_PORT=str(ports[1]), LOCAL_AGENT="0")
    try:
        up.wait_until_up()
        up.wait_for(lambda: reporting(home) >= 24 - len(OFF_AT_FIRST))
        yield up
    finally:
        if up.process.poll() is None:
            up.end()


def test_each_listed_machine_has_the_agent_that_is_on_it(run: Run, home: Path) -> None:
    # All but the one that is being provisioned are there from the sandbox's past on; that one comes with the first listing.
    run.wait_for(lambda: [row[1] for row in rows(home, MACHINES)] == [True] * 24)
    machines = rows(home, MACHINES)
    for external_id, managed, project, claimed, conflict, _, kind in machines:
        assert (managed, kind) == (True, "sandbox")
        assert project
        assert claimed in {external_id, None}
        assert not conflict
    without = {external_id for external_id, _, _, claimed, *_ in machines if claimed is None}
    assert without <= OFF_AT_FIRST


# What needs no minutes to be sure of.
FAULTS = {("machine.unreachable", "batch-a100-02"), ("gpu.lost", "batch-a100-01"), ("machine.lease", "cn-ft-01")}
ALERTS = """
SELECT a.cause, i.name FROM fleet_alert a JOIN fleet_instance i ON i.id = a.instance_id JOIN fleet_team t ON t.id = a.team_id
WHERE a.closed_at IS NULL AND t.slug = 'sandbox'
"""


def test_what_goes_wrong_raises_alerts(run: Run, home: Path) -> None:
    run.wait_for(lambda: set(rows(home, ALERTS)) >= FAULTS)


MONEY = """
SELECT coalesce(sum(amount), 0) FROM cost_month m JOIN fleet_team t ON t.id = m.team_id WHERE t.slug = 'sandbox'
"""


def test_its_past_is_counted(run: Run, home: Path) -> None:
    run.wait_for(lambda: rows(home, MONEY)[0][0] > 10_000)


def test_they_are_in_no_other_team(run: Run, home: Path) -> None:
    assert rows(home, OTHERS) == [(0,)]


def test_whoever_signs_in_may_look(run: Run) -> None:
    with httpx.Client(base_url=run.url) as browser:
        browser.get("/login/")
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post("/login/", data=form)
        assert "llm-pre-01" in browser.get("/t/sandbox/instances/").text


def test_it_stops_with_the_rest_and_keeps_its_place(run: Run, home: Path) -> None:
    assert run.end() == 0
    assert "sandbox  | stopped" in run.said
    assert (home / "sandbox" / "agents.json").stat().st_mode & 0o777 == 0o600
