"""PostgreSQL for a machine that has none: own cluster, SCRAM on a private socket, no TCP."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, ClassVar
from urllib.parse import quote

import psycopg
from psycopg import sql

from config.embedded.account import Account, EmbeddedError
from config.embedded.binaries import POSTGRES_MAJOR, postgres_bin
from config.embedded.processes import command_line
from config.embedded.server import EmbeddedServer, as_account

DATABASE = "rackrent"
# The application's role owns its database and may create others (the tests do), but cannot run programs or read files on the server.
ROLE = "rackrent"
SUPERUSER = "rackrent_super"
SOCKET_NAME = ".s.PGSQL.5432"
# In postmaster.pid, counted from 0 (src/include/utils/pidfile.h).
STATUS_LINE = 7

# Sized for a small machine that runs everything; each has its reason in docs/operate.md.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "effective_cache_size": "512MB",
    "maintenance_work_mem": "64MB",
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "512MB",
    "wal_compression": "pglz",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "",
    "log_checkpoints": "off",
}

_HBA = "local all all scram-sha-256\n"


class EmbeddedPostgres(EmbeddedServer):
    """PostgreSQL 18 in `data_dir`; `settings` override or add to SETTINGS."""

    label: ClassVar[str] = "PostgreSQL"
    # Fast shutdown: open sessions are ended and the data files closed cleanly.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def __init__(
        self,
        data_dir: Path,
        *,
        run_dir: Path | None = None,
        output: IO[bytes] | int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, run_dir=run_dir, output=output)
        self.settings = {**SETTINGS, **(settings or {})}

    @property
    def cluster(self) -> Path:
        return self.home / "cluster"

    @property
    def url(self) -> str:
        return self._url(ROLE, DATABASE)

    @property
    def superuser_url(self) -> str:
        return self._url(SUPERUSER, "postgres")

    def _url(self, role: str, database: str) -> str:
        password = self.kept_secret(f"{role}.password")
        return f"postgresql://{role}:{quote(password, safe='')}@/{database}?host={quote(str(self.run_dir), safe='')}"

    def is_accepting(self) -> bool:
        # Asking a server that still recovers would fill its log with refusals: it writes down when it is ready.
        if not (self.run_dir / SOCKET_NAME).exists() or self._pid_file_lines()[STATUS_LINE:] != ["ready"]:
            return False
        try:
            psycopg.connect(self.superuser_url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise EmbeddedError(
                    f"A PostgreSQL on {self.run_dir} does not know our password: its data is not from {self.home}."
                ) from error
            return False
        return True

    def start(self) -> None:
        super().start()
        self._create_database()

    def _is_starting(self) -> bool:
        pid = self._recorded_pid()
        return pid is not None and str(self.cluster) in command_line(pid)

    def _prepare(self, account: Account) -> None:
        version = self.cluster / "PG_VERSION"
        if not version.exists():
            self._initdb(account)
        self._require_major(version.read_text().strip())
        self._disown_pid_file()

    def _disown_pid_file(self) -> None:
        """Let the next server pass a pid file whose process is gone and whose number somebody else may have by now.

        The file itself must stay: the server finds backends of a killed predecessor by the shared memory key in it. It passes over
        the number of its own parent, so ours is written in place of the dead one.
        """
        (self.run_dir / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
        if self._recorded_pid() is None:
            return
        pid_file = self.cluster / "postmaster.pid"
        rest = pid_file.read_text().partition("\n")[2]
        descriptor = os.open(pid_file, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{os.getpid()}\n{rest}")

    def _require_major(self, found: str) -> None:
        if found != str(POSTGRES_MAJOR):
            raise EmbeddedError(
                f"The data in {self.cluster} is from PostgreSQL {found}; this Rackrent runs PostgreSQL {POSTGRES_MAJOR}. Nothing was changed. "
                f"With the Rackrent release that wrote it, run `manage.py backup FILE`; then move {self.home} away and, with this release, "
                "run `manage.py restore FILE`."
            )

    def _initdb(self, account: Account) -> None:
        if self.cluster.exists() and any(self.cluster.iterdir()):
            raise EmbeddedError(
                f"{self.cluster} is not empty but holds no PostgreSQL data. Move it away and start again."
            )
        password_file = self.home / "initdb.password"
        password_file.unlink(missing_ok=True)
        password_file.touch(mode=0o600)
        password_file.write_text(self.kept_secret(f"{SUPERUSER}.password"))
        os.chown(password_file, account.uid, account.gid)
        draft = self._empty_draft(account)
        try:
            self._run_initdb(account, draft, password_file)
        finally:
            password_file.unlink()
        (draft / "pg_hba.conf").write_text(_HBA)
        # A first start that is cut short leaves a draft, never half a cluster.
        draft.rename(self.cluster)

    def _empty_draft(self, account: Account) -> Path:
        draft = self.home / "cluster.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        os.chown(draft, account.uid, account.gid)
        return draft

    def _run_initdb(self, account: Account, draft: Path, password_file: Path) -> None:
        command = [
            str(postgres_bin() / "initdb"),
            f"--pgdata={draft}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            # Sorting of the server's own, so that data survives a change of the system's C library.
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--data-checksums",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **as_account(account, self.home))
        if done.returncode:
            raise EmbeddedError(f"initdb could not make {draft}: {(done.stderr or done.stdout).strip()}")

    def _command(self) -> list[str]:
        options = {**self.settings, "unix_socket_directories": f'"{self.run_dir}"'}
        arguments = [f"-c{name}={value}" for name, value in options.items()]
        return [str(postgres_bin() / "postgres"), "-D", str(self.cluster), *arguments]

    def _recorded_pid(self) -> int | None:
        first = self._pid_file_lines()[:1]
        return int(first[0]) if first and first[0].isdigit() else None

    def _pid_file_lines(self) -> list[str]:
        try:
            return [line.strip() for line in (self.cluster / "postmaster.pid").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def _create_database(self) -> None:
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
                password = self.kept_secret(f"{ROLE}.password")
                create = sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(
                    sql.Identifier(ROLE), sql.Literal(password)
                )
                connection.execute(create)
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(
                    sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(ROLE))
                )
