"""A whole dashboard beside the tests' own, whose web process and PostgreSQL can be killed and started again."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psycopg

from config.embedded import EmbeddedPostgres
from config.web import SOCKET_VARIABLE

ROOT = Path(__file__).parents[3]
ADD_TEAM = "INSERT INTO fleet_team (name, slug, currency, time_zone, is_sandbox, created_at) VALUES (%s, %s, 'USD', 'UTC', false, now())"


class Dashboard:
    """Migrated and empty. Its port stays open while the web process is away, as under `manage.py up`: callers wait in its queue."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.postgres = EmbeddedPostgres(directory / "postgres")
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.web: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.postgres.start()
        self.manage("migrate", "--verbosity=0")
        return self

    def __exit__(self, *_: object) -> None:
        if self.web:
            self.kill_web()
        self.listening.close()
        self.postgres.destroy()

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "DATABASE_URL": self.postgres.url, "PYTHONUNBUFFERED": "1"}

    def manage(self, *words: str) -> None:
        subprocess.run([sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment, check=True)

    def add_team(self, slug: str) -> None:
        with psycopg.connect(self.postgres.url) as connection:
            connection.execute(ADD_TEAM, [slug, slug])

    def start_web(self) -> None:
        number = self.listening.fileno()
        with (self.directory / "web.log").open("ab") as log:
            self.web = subprocess.Popen(
                [sys.executable, "-m", "config.web"],
                cwd=ROOT,
                env={**self.environment, SOCKET_VARIABLE: str(number)},
                pass_fds=(number,),
                stdout=log,
                stderr=log,
            )

    def kill_web(self) -> None:
        assert self.web
        self.web.kill()
        self.web.wait()
        self.web = None

    def kill_postgres(self) -> None:
        assert self.postgres.process
        self.postgres.process.kill()
        self.postgres.process.wait()
        self.postgres.process = None


class RunningReplay:
    """`manage.py replay_trace` as a process of its own, followed by the lines that it prints."""

    def __init__(self, dashboard: Dashboard, trace: Path, *options: str) -> None:
        command = [sys.executable, "manage.py", "replay_trace", str(trace), f"--url={dashboard.url}"]
        self.process = subprocess.Popen(
            [*command, f"--state-dir={dashboard.directory / 'replay'}", *options],
            cwd=ROOT,
            env=dashboard.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def until(self, pattern: str) -> re.Match[str]:
        """Reads on to the first line that matches; fails when the process ends before."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"it ended without {pattern!r}: {''.join(self.lines[-20:])}")

    def until_sent(self, samples: int) -> None:
        """Until so many are acknowledged and the server is taking more."""
        while int(self.until(r"^\s*([\d,]+) of [\d,]+ samples, ")[1].replace(",", "")) < samples:
            pass

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> int:
        output, _ = self.process.communicate()
        self.lines.append(output)
        return self.process.returncode
