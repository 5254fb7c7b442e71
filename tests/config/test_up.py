"""The whole installation for real: `manage.py up` on a fresh machine, killed, recovered and stopped."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from config.embedded.processes import started_at

# Everything starts for real, on a machine that may be busy.
pytestmark = pytest.mark.timeout(400)

PATIENCE_SECONDS = 200.0
PASSWORD = "correct horse battery"
METRICS_TOKEN = "correct-horse-battery-staple"
# What tests set for themselves; a fresh machine has none of it.
OF_THE_TESTS = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SECRET_KEY", "CREDENTIAL_KEYS")


class Run:
    """One `manage.py up`, with the lines it wrote. `settings`: environment beside what a fresh machine has."""

    def __init__(self, home: Path, port: int, **settings: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in OF_THE_TESTS}
        own = {"RACKRENT_DATA_DIR": str(home), "RACKRENT_PORT": str(port), "SANDBOX": "0", "HASHED_STATIC": "0"}
        own["METRICS_TOKEN"] = METRICS_TOKEN
        self.url = f"http://127.0.0.1:{port}"
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            env={**kept, **own, "RACKRENT_ADMIN_PASSWORD": PASSWORD, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            self.lines.extend(self.process.stdout)

    @property
    def said(self) -> str:
        return "".join(self.lines)

    def wait_for(self, condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def wait_until_up(self) -> None:
        self.wait_for(lambda: "Rackrent is up" in self.said)

    def health(self) -> httpx.Response | None:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=10)
        except httpx.HTTPError:
            return None

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_SECONDS)
        self.reader.join(PATIENCE_SECONDS)
        return status


def recorded(home: Path) -> dict[str, int]:
    """The running children by name."""
    text = (home / "up.json").read_text()
    return {name: int(pid) for name, pid in re.findall(r'"name": "(\w+)", "pid": (\d+)', text)}


def count(home: Path, table: str) -> int:
    from config.embedded import EmbeddedPostgres

    with psycopg.connect(EmbeddedPostgres(home / "postgres").url) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row
    return int(row[0])


@dataclass(frozen=True)
class Seen:
    """What was there to see while the first run was up; the refusals are (exit status, lines) of further runs."""

    health: dict[str, Any]
    children: dict[str, int]
    refused_here: tuple[int, str]
    refused_elsewhere: tuple[int, str]
    page: str
    metrics: str


def look_at(run: Run, home: Path, port: int) -> Seen:
    health = run.health()
    assert health
    other = Path(tempfile.mkdtemp(prefix="rackrent-up-", dir="/var/tmp"))
    other.chmod(0o755)
    try:
        return Seen(
            health.json(), recorded(home), refused(home, port), refused(other, port), sign_in(run.url), metrics(run.url)
        )
    finally:
        shutil.rmtree(other)


def metrics(url: str) -> str:
    return httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}, timeout=30).text


def works_since(moment: float, health: httpx.Response | None) -> bool:
    """Whether all is well, and worker and beat were seen to work after `moment`: their older notes do not count."""
    if health is None or health.status_code != 200:
        return False
    parts = health.json()
    return all(parts[name]["age_seconds"] < time.monotonic() - moment for name in ("worker", "beat"))


def refused(home: Path, port: int) -> tuple[int, str]:
    run = Run(home, port)
    status = run.process.wait(PATIENCE_SECONDS)
    run.reader.join(PATIENCE_SECONDS)
    return status, run.said


def sign_in(url: str) -> str:
    """The page that the first admin comes to."""
    with httpx.Client(base_url=url, timeout=60) as browser:
        browser.get("/login/")
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        return browser.post("/login/", data=form, follow_redirects=True).url.path


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    # Not below pytest's own directory: as root, the servers' account has to pass it.
    directory = Path(tempfile.mkdtemp(prefix="rackrent-up-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def port() -> int:
    """A free port that no outgoing connection will be given meanwhile: below the ephemeral ones."""
    for candidate in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", candidate)):
            return candidate
    pytest.fail("no port is free")


@pytest.fixture(scope="module")
def chosen_home(home: Path) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    patch.setenv("RACKRENT_DATA_DIR", str(home))
    yield home
    patch.undo()


@pytest.fixture(scope="module")
def first(chosen_home: Path, port: int) -> tuple[Run, Seen]:
    """The first run on a fresh machine: up, looked at, and then `up` alone is killed."""
    run = Run(chosen_home, port)
    try:
        run.wait_until_up()
        run.wait_for(lambda: count(chosen_home, "host_latest") == 1)
        run.wait_for(lambda: "rackrent_task_runs_total{" in metrics(run.url))
        seen = look_at(run, chosen_home, port)
    except BaseException:
        run.end()
        raise
    run.end(signal.SIGKILL)
    return run, seen


@pytest.fixture(scope="module")
def killed(first: tuple[Run, Seen]) -> Run:
    return first[0]


@pytest.fixture(scope="module")
def seen(first: tuple[Run, Seen]) -> Seen:
    return first[1]


@pytest.fixture(scope="module")
def second(killed: Run, chosen_home: Path, port: int) -> Iterator[Run]:
    run = Run(chosen_home, port)
    try:
        run.wait_until_up()
        yield run
    finally:
        if run.process.poll() is None:
            run.end()


class TestFirstRun:
    def test_every_part_works_and_is_measured(self, seen: Seen):
        assert seen.health["status"] == "ok"
        assert all(seen.health[part]["ok"] for part in ("database", "broker", "worker", "beat"))

    def test_there_is_one_process_of_each_kind(self, seen: Seen):
        assert list(seen.children) == ["postgres", "valkey", "web", "agent", "long", "outside", "worker", "beat"]

    def test_its_metrics_have_what_every_process_counted(self, seen: Seen):
        """The web process is asked; tasks ran in a worker's children, and the agent's batches came over the wire."""
        for line in (
            r'rackrent_task_runs_total{result="success",task="config.pulse"} [1-9]',
            r'rackrent_ingest_requests_total{answer="ok",endpoint="samples"} [1-9]',
            r'rackrent_samples_stored_total{kind="host",source="agent"} [1-9]',
            r'rackrent_part_up{part="worker"} 1.0',
            r"rackrent_ingest_pool_connections [1-9]",
        ):
            assert re.search(f"^{line}", seen.metrics, re.MULTILINE), seen.metrics

    def test_it_says_how_to_sign_in_and_does_not_show_a_chosen_password(self, killed: Run, seen: Seen):
        assert f"Rackrent is up: {killed.url}" in killed.said
        assert "First sign-in: admin / the password in RACKRENT_ADMIN_PASSWORD" in killed.said
        assert PASSWORD not in killed.said
        assert seen.page == "/t/my-team/"

    def test_it_says_that_rented_machines_cannot_reach_it(self, killed: Run):
        assert "Rented machines cannot reach it. PUBLIC_URL is not set" in killed.said

    def test_a_second_run_in_the_same_place_stands_back(self, killed: Run, seen: Seen):
        status, said = seen.refused_here
        assert status == 1
        assert f"Rackrent runs here already: process {killed.process.pid}, at {killed.url}" in said

    def test_a_run_elsewhere_says_who_has_the_port(self, killed: Run, seen: Seen, port: int):
        status, said = seen.refused_elsewhere
        assert status == 1
        assert f"Port {port} is taken by process {killed.process.pid}" in said


class TestAfterAKill:
    def test_what_was_left_behind_is_ended_and_the_data_kept(self, second: Run, seen: Seen, chosen_home: Path):
        running = recorded(chosen_home)
        for name, pid in seen.children.items():
            assert f"ending {name} (process {pid})" in second.said
            assert running[name] != pid
        assert "First sign-in" not in second.said
        assert count(chosen_home, "fleet_user") == count(chosen_home, "host_latest") == 1

    @pytest.mark.parametrize("name", ["web", "worker", "postgres", "valkey"])
    def test_a_part_that_is_killed_comes_back(self, second: Run, chosen_home: Path, name: str):
        pid = recorded(chosen_home)[name]
        os.kill(pid, signal.SIGKILL)
        second.wait_for(lambda: f"{name} is started again" in second.said)
        assert f"{name} ended (killed by SIGKILL)" in second.said
        assert recorded(chosen_home)[name] != pid
        restarted_at = time.monotonic()
        second.wait_for(lambda: works_since(restarted_at, second.health()))

    def test_a_stop_ends_everything_in_order(self, second: Run, chosen_home: Path):
        children = recorded(chosen_home)
        assert second.end() == 0
        order = re.findall(r"stopping (\w+)", second.said)
        assert [name for name in order if name in children] == list(reversed(children))
        assert all(started_at(pid) is None for pid in children.values())
        assert not (chosen_home / "up.json").exists()
        assert "database system is shut down" in second.said
