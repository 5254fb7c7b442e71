from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import EmbeddedError, EmbeddedPostgres
from config.embedded.binaries import postgres_bin
from config.embedded.processes import command_line
from tests.config.embedded_home import PATH_LENGTH, long_private_path

NOBODY = 65534


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_private_path(tmp_path_factory.mktemp("pg")) / "postgres"


@pytest.fixture(scope="module")
def postgres(home: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(home)
    server.start()
    yield server
    server.destroy()


def one_value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row
    value: object = row[0]
    return value


def test_it_serves_below_a_long_path_that_nobody_else_may_enter(postgres: EmbeddedPostgres, home: Path) -> None:
    assert len(str(home)) >= PATH_LENGTH
    assert one_value(postgres.url, "SELECT current_setting('server_version_num')::int / 10000") == 18


def test_the_application_is_no_superuser_but_owns_its_database_and_may_create_others(
    postgres: EmbeddedPostgres,
) -> None:
    assert one_value(postgres.url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
    assert one_value(postgres.url, "SELECT rolcreatedb FROM pg_roles WHERE rolname = current_user") is True
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
    assert one_value(postgres.url, owner) == "rackrent"


def test_it_lets_nobody_in_without_the_password(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host=str(postgres.run_dir), user="rackrent", dbname="rackrent", password="guess")
    rules = "SELECT string_agg(type || ' ' || auth_method, ',') FROM pg_hba_file_rules"
    assert one_value(postgres.superuser_url, rules) == "local scram-sha-256"


def test_it_opens_no_tcp_port_and_closes_its_socket_directory(postgres: EmbeddedPostgres) -> None:
    assert one_value(postgres.url, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(postgres.run_dir.stat().st_mode) == 0o700


def test_it_shows_no_password_in_the_process_list(postgres: EmbeddedPostgres) -> None:
    assert postgres.process
    password = (postgres.home / "rackrent.password").read_text()
    assert password not in " ".join(command_line(postgres.process.pid))


def test_it_needs_no_extension_but_those_that_ship(postgres: EmbeddedPostgres) -> None:
    assert one_value(postgres.url, "SELECT array_agg(name ORDER BY name) FROM pg_available_extensions") == [
        "plpgsql",
        "vector",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a system account for it")
def test_root_runs_it_under_another_account(postgres: EmbeddedPostgres) -> None:
    assert postgres.process
    assert Path(f"/proc/{postgres.process.pid}").stat().st_uid == postgres.cluster.stat().st_uid != 0


def test_a_second_start_reuses_the_server_and_does_not_stop_it(postgres: EmbeddedPostgres, home: Path) -> None:
    with EmbeddedPostgres(home) as second:
        assert second.process is None
        assert one_value(second.url, "SELECT 1") == 1
    assert one_value(postgres.url, "SELECT 1") == 1


class TestAfterAKill:
    def test_it_recovers_with_committed_rows(self, tmp_path: Path) -> None:
        first = EmbeddedPostgres(tmp_path / "postgres")
        try:
            first.start()
            with psycopg.connect(first.url) as connection:
                connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
            assert first.process
            first.process.kill()
            first.process.wait()
            with EmbeddedPostgres(tmp_path / "postgres") as second:
                assert second.process
                assert one_value(second.url, "SELECT number FROM kept") == 7
        finally:
            first.destroy()

    def test_a_stale_pid_that_another_process_has_by_now_does_not_keep_it_down(self, tmp_path: Path) -> None:
        server = EmbeddedPostgres(tmp_path / "postgres")
        try:
            server.start()
            assert server.process
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            self._name_in_pid_files(server, os.getppid())
            server.start()
            assert one_value(server.url, "SELECT 1") == 1
        finally:
            server.destroy()

    @staticmethod
    def _name_in_pid_files(server: EmbeddedPostgres, pid: int) -> None:
        for file in (server.cluster / "postmaster.pid", server.run_dir / ".s.PGSQL.5432.lock"):
            file.write_text(f"{pid}\n{file.read_text().partition(chr(10))[2]}")


def test_it_refuses_data_of_an_older_postgresql_and_leaves_it_alone(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres")
    try:
        server.start()
        server.stop()
        version = server.cluster / "PG_VERSION"
        version.write_text("16\n")
        with pytest.raises(
            EmbeddedError, match=r"from PostgreSQL 16; this Rackrent runs PostgreSQL 18.*manage.py backup"
        ):
            server.start()
        assert version.read_text() == "16\n"
    finally:
        server.destroy()


def test_it_says_why_it_did_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.embedded.server.START_ATTEMPTS", 1)
    server = EmbeddedPostgres(tmp_path / "postgres", settings={"shared_buffers": "plenty"})
    try:
        with pytest.raises(EmbeddedError, match='invalid value for parameter "shared_buffers"'):
            server.start()
        assert server.process is None
    finally:
        server.destroy()


def test_it_runs_as_an_ordinary_user_below_a_long_path() -> None:
    if os.geteuid() != 0:
        pytest.skip("every other test here runs as an ordinary user already")
    base = Path("/var/tmp") / f"rackrent-test-{os.getpid()}"
    base.mkdir(mode=0o755)
    os.chown(base, NOBODY, NOBODY)
    try:
        # Forked, with the modules loaded: the interpreter may lie where only root may read.
        child = multiprocessing.get_context("fork").Process(target=_serve_as_nobody, args=(base, postgres_bin()))
        child.start()
        child.join(90)
        assert child.exitcode == 0
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _serve_as_nobody(base: Path, programs: Path) -> None:
    pytest.MonkeyPatch().setattr("config.embedded.postgres.postgres_bin", lambda: programs)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    home = long_private_path(base) / "postgres"
    server = EmbeddedPostgres(home)
    server.start()
    assert one_value(server.url, "SELECT 1") == 1
    assert server.home == home
    assert len(os.fsencode(server.run_dir)) < 80
    server.destroy()
